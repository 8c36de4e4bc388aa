# Shared by all local scripts: paths, ports, output and errors. Sourced. The caller sets STATE (its own folder) and
# PORT_BASE.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

if [ -t 2 ]; then bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'; else bold='' dim='' red='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
note() { printf '    %s%s%s\n' "$dim" "$*" "$plain" >&2; }
# print_help: prints the header comment of the running script.
print_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }
# fail WHAT [WHAT-TO-DO]: prints one error line and exits with 1.
fail() {
  printf '%serror:%s %s%s\n' "$red" "$plain" "$1" "${2:+ — $2}" >&2
  exit 1
}

# All ports of a stack are derived from its base, so that stacks do not collide. A running stack keeps its base.
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
  SIMULATOR_WEBPUSH_PORT=$((PORT_BASE + 24))
  # 10 to 15, 22, 23, 27 and 28 are the admin ports. Only a cluster uses the ports of its further nodes, by node number.
  AMQP_PORTS=([1]=$AMQP_PORT [2]=$((PORT_BASE + 16)) [3]=$((PORT_BASE + 18)))
  DIST_PORTS=([1]=$DIST_PORT [2]=$((PORT_BASE + 17)) [3]=$((PORT_BASE + 19)))
  STANDBY_PORT=$((PORT_BASE + 20))
  EVENTS_API_PORT=$((PORT_BASE + 21)) CONSOLE_PORT=$((PORT_BASE + 26))
}

# admin_port SERVICE: the port of /metrics and /health.
admin_port() {
  case $1 in
    rules) echo $((PORT_BASE + 10)) ;;
    token-registry) echo $((PORT_BASE + 11)) ;;
    apns-sender) echo $((PORT_BASE + 12)) ;;
    fcm-sender) echo $((PORT_BASE + 13)) ;;
    feedback) echo $((PORT_BASE + 14)) ;;
    provider-simulator) echo $((PORT_BASE + 15)) ;;
    events-api) echo $((PORT_BASE + 22)) ;;
    webhook-sender) echo $((PORT_BASE + 23)) ;;
    console) echo $((PORT_BASE + 27)) ;;
    webpush-sender) echo $((PORT_BASE + 28)) ;;
    *) fail "no admin port for '$1'" ;;
  esac
}

SERVICES=(provider-simulator feedback apns-sender fcm-sender webpush-sender token-registry rules events-api webhook-sender)

port_is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# need_free_port PORT FOR-WHAT
need_free_port() {
  if port_is_open "$1"; then
    fail "port $1, wanted for $2, is taken by another program" \
      "stop it, or choose other ports: LOCAL_PORT_BASE=<number> $0"
  fi
}

# Only one script at a time may change the processes of STATE.
take_lock() {
  exec 8>"$STATE/lock"
  flock -n 8 || fail "another deploy/local command is at work in $STATE" "wait for it, or set LOCAL_STATE=<folder>"
}
release_lock() { exec 8>&-; }

# wait_until SECONDS WHAT COMMAND...: polls until the command succeeds; returns 1 at the timeout. WHAT documents the
# call; the caller reports the failure.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.2
  done
}

# The log folder, with access for its owner only.
log_folder() {
  mkdir -p "$STATE/log"
  chmod 700 "$STATE/log"
}

# A random secret of URL-safe characters.
random_secret() { openssl rand -hex 24; }

# secret_file NAME: prints the path of a development secret, created on first use, readable by its owner only.
secret_file() {
  local path=$STATE/secrets/$1
  if [ ! -s "$path" ]; then
    mkdir -p "$STATE/secrets"
    chmod 700 "$STATE/secrets"
    (umask 077 && random_secret >"$path")
  fi
  echo "$path"
}

# token_keys_file: prints the path of the registry's token encryption keys, created on first use.
token_keys_file() {
  local path=$STATE/secrets/token-keys
  [ -s "$path" ] || echo "local:$(openssl rand -base64 32)" | private_file token-keys >/dev/null
  echo "$path"
}

secret() { cat "$(secret_file "$1")"; }

# private_file NAME: writes standard input to a file in the secrets folder, readable by its owner only, and prints the
# path.
private_file() {
  local path=$STATE/secrets/$1
  mkdir -p "$STATE/secrets"
  chmod 700 "$STATE/secrets"
  (umask 077 && cat >"$path.new") && mv "$path.new" "$path"
  echo "$path"
}
