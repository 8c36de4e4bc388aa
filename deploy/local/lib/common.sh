# What every local script shares: where things are, how to speak, how to fail.
# Sourced, never run. The caller sets STATE (its own folder) and PORT_BASE before use.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

if [ -t 2 ]; then bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'; else bold='' dim='' red='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
note() { printf '    %s%s%s\n' "$dim" "$*" "$plain" >&2; }
# print_help: the header of the script that runs, from its second line to the last that is a comment.
print_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }
# fail WHAT [WHAT-TO-DO]: one clear line, then the end.
fail() {
  printf '%serror:%s %s%s\n' "$red" "$plain" "$1" "${2:+ — $2}" >&2
  exit 1
}

# Every port of one stack follows from its base, so that two stacks never meet. A stack that is there already keeps
# the base it was started with.
ports() {
  local started=$STATE/run/port-base
  if [ -s "$started" ]; then
    [ -z "${LOCAL_PORT_BASE:-}" ] || [ "$LOCAL_PORT_BASE" = "$(cat "$started")" ] \
      || fail "the stack in $STATE was started with LOCAL_PORT_BASE=$(cat "$started")" \
        "use that, stop it with deploy/local/down, or choose another folder: LOCAL_STATE=<folder>"
    PORT_BASE=$(cat "$started")
  fi
  { [[ $PORT_BASE =~ ^[0-9]{4,5}$ ]] && [ "$PORT_BASE" -ge 1024 ] && [ "$PORT_BASE" -le 65500 ]; } \
    || fail "LOCAL_PORT_BASE=$PORT_BASE is not a number from 1024 to 65500"
  AMQP_PORT=$((PORT_BASE + 0)) EPMD_PORT=$((PORT_BASE + 1)) DIST_PORT=$((PORT_BASE + 2))
  POSTGRES_PORT=$((PORT_BASE + 3))
  SIMULATOR_APNS_PORT=$((PORT_BASE + 4)) SIMULATOR_APNS_SANDBOX_PORT=$((PORT_BASE + 5))
  SIMULATOR_FCM_PORT=$((PORT_BASE + 6)) SIMULATOR_CONTROL_PORT=$((PORT_BASE + 7))
  REGISTRY_PORT=$((PORT_BASE + 8)) RULES_PORT=$((PORT_BASE + 9))
}

# admin_port SERVICE: where that service serves /metrics and /health.
admin_port() {
  case $1 in
    rules) echo $((PORT_BASE + 10)) ;;
    token-registry) echo $((PORT_BASE + 11)) ;;
    apns-sender) echo $((PORT_BASE + 12)) ;;
    fcm-sender) echo $((PORT_BASE + 13)) ;;
    feedback) echo $((PORT_BASE + 14)) ;;
    provider-simulator) echo $((PORT_BASE + 15)) ;;
    *) fail "no admin port is known for '$1'" ;;
  esac
}

SERVICES=(provider-simulator feedback apns-sender fcm-sender token-registry rules)

port_is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# need_free_port PORT FOR-WHAT
need_free_port() {
  if port_is_open "$1"; then
    fail "port $1, wanted for $2, is taken by another program" \
      "stop it, or choose other ports: LOCAL_PORT_BASE=<number> $0"
  fi
}

# One script at a time changes what runs in STATE.
take_lock() {
  exec 8>"$STATE/lock"
  flock -n 8 || fail "another deploy/local command is at work in $STATE" "wait for it, or choose LOCAL_STATE=<folder>"
}
release_lock() { exec 8>&-; }

# wait_until SECONDS WHAT COMMAND...: polls until the command succeeds; returns 1 when the time is up. WHAT tells the
# reader of the call what is waited for; the caller says it to people.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.2
  done
}

# The folder of the logs, which only its owner may enter.
log_folder() {
  mkdir -p "$STATE/log"
  chmod 700 "$STATE/log"
}

# A random secret, safe in a URL.
random_secret() { openssl rand -hex 24; }

# secret_file NAME: prints the path of a development secret, made on first use, readable by its owner only.
secret_file() {
  local path=$STATE/secrets/$1
  if [ ! -s "$path" ]; then
    mkdir -p "$STATE/secrets"
    chmod 700 "$STATE/secrets"
    (umask 077 && random_secret >"$path")
  fi
  echo "$path"
}

# token_keys_file: prints the path of the keys that the registry encrypts device tokens with, made on first use.
token_keys_file() {
  local path=$STATE/secrets/token-keys
  [ -s "$path" ] || echo "local:$(openssl rand -base64 32)" | private_file token-keys >/dev/null
  echo "$path"
}

secret() { cat "$(secret_file "$1")"; }

# private_file NAME: writes standard input to a file of its owner only in the secrets' folder, and prints the path.
private_file() {
  local path=$STATE/secrets/$1
  mkdir -p "$STATE/secrets"
  chmod 700 "$STATE/secrets"
  (umask 077 && cat >"$path.new") && mv "$path.new" "$path"
  echo "$path"
}
