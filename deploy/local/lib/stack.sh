# The services and the simulator as processes of one stack. Sourced last.

# Creates the files that a stack needs before it starts: certificates, keys, the apps file.
prepare_credentials() {
  local keys=$STATE/credentials
  mkdir -p "$keys"
  if [ ! -s "$keys/apns.p8" ]; then
    (umask 077 && openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$keys/apns.p8" 2>/dev/null)
  fi
  if [ ! -s "$keys/service-account.json" ]; then
    local private
    private=$(openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 2>/dev/null)
    (umask 077 && jq -n --arg key "$private" '{
      type: "service_account", project_id: "heliograph-demo", private_key_id: "demo-key-1", private_key: $key,
      client_email: "heliograph@heliograph-demo.iam.example", token_uri: "https://oauth2.googleapis.com/token"
    }' >"$keys/service-account.json")
  fi
  # A VAPID key: the 32 bytes of a P-256 private key in base64url.
  if [ ! -s "$keys/family-portal.vapid" ]; then
    (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -outform DER | tail -c +8 | head -c 32 \
      | base64 -w0 | tr '+/' '-_' | tr -d '=' >"$keys/family-portal.vapid")
  fi
  (umask 077 && secret bearer >"$keys/bearer.secret" && secret publisher >"$keys/publisher.secret")
  prepare_apps
}

# Whether any process of the stack runs.
is_any_running() {
  local file name
  for file in "$STATE"/run/*.pid; do
    name=${file##*/}
    is_running "${name%.pid}" && return 0
  done
  return 1
}

# The provider endpoints of the stack: simulator, sandbox or real. Fixed until it stops.
providers() { cat "$STATE/run/providers" 2>/dev/null || echo simulator; }

# Writes the next apps file and links the rule files: the demo's apps, which only the simulator accepts, and the apps of
# the folders in run/app-folders. Services read the file after `apply_topology` has created the apps' queues. While rules
# run, the file keeps its apps, and a former folder with a mistake its last correct rules: it does not prevent a new app.
prepare_apps() {
  local folder kept=false
  mkdir -p "$STATE/rule-files"
  rm -f "$STATE/apps.next.yaml"
  if is_running rules && [ -s "$STATE/apps.yaml" ]; then
    kept=true
    cp "$STATE/apps.yaml" "$STATE/apps.next.yaml"
  else
    find "$STATE/rule-files" -mindepth 1 -delete
    [ "$(providers)" != simulator ] \
      || sed "/^#/!s|@KEYS@|$STATE/credentials|g" "$ROOT/deploy/local/demo/apps.yaml" >"$STATE/apps.next.yaml"
  fi
  [ "$(providers)" != simulator ] || ln -sfn "$ROOT"/Services/Rules/RuleSets/*.yaml "$STATE/rule-files/"
  while IFS= read -r folder; do
    "$(product pushctl)" app install "$folder" --apps-file "$STATE/apps.next.yaml" --rules "$STATE/rule-files" \
      --providers "$(providers)" >/dev/null && { keep_rules "$folder"; continue; }
    $kept || fail "the app folder $folder cannot be used" \
      "correct it (pushctl app check $folder), or leave it out: deploy/local/down, then deploy/local/up"
    restore_rules "$folder"
    note "warning: $folder has mistakes; its apps run as before (pushctl app check $folder)"
  done < <(cat "$STATE/run/app-folders" 2>/dev/null)
}

# keep_rules FOLDER: copies its rule files, which are correct now.
keep_rules() {
  mkdir -p "$STATE/correct-rules"
  cp "$1"/rules/*.yaml "$STATE/correct-rules/"
}

# restore_rules FOLDER: replaces the links to its rule files by their last correct copies. Rules refuse all changed files
# while one has a mistake.
restore_rules() {
  local link name
  for link in "$STATE"/rule-files/*.yaml; do
    name=${link##*/}
    [[ $(readlink "$link") = "$1"/* ]] && [ -f "$STATE/correct-rules/$name" ] || continue
    cp "$STATE/correct-rules/$name" "$STATE/rule-files/.$name.new" && mv -T "$STATE/rule-files/.$name.new" "$link"
  done
}

# The apps file that services read soon.
next_apps_file() { if [ -f "$STATE/apps.next.yaml" ]; then echo "$STATE/apps.next.yaml"; else echo "$STATE/apps.yaml"; fi; }

# apps_of FOLDER: the ids of its apps.
apps_of() { basename -s .yaml -a "$1"/rules/*.yaml; }

# apps_are_served APP...: whether rules and the registry consume the queues of the apps. Senders may pause theirs.
apps_are_served() {
  local queues app
  queues=$("$STATE/rabbitmqctl" -q list_queues --silent -p heliograph name consumers) || return 1
  for app in "$@"; do
    awk -v end=".app.$app" 'substr($1, length($1) - length(end) + 1) == end { n++; if ($2 == 0) idle++ }
      END { exit !(n == 4 && idle == 0) }' <<<"$queues" || return 1
  done
}

# product NAME: the path of the built executable.
product() { echo "$ROOT/.build/$CONFIGURATION/$1"; }

# build_products [PRODUCT...]: builds everything when none is named. Like the images, a release links Swift's libraries
# statically.
build_products() {
  say "Building (the first time takes several minutes)"
  local log=$STATE/log/build.log product products=("$@") flags=(-c "$CONFIGURATION")
  [ "$CONFIGURATION" != release ] || flags+=(--static-swift-stdlib)
  log_folder
  : >"$log"
  [ ${#products[@]} -gt 0 ] || products=('')
  for product in "${products[@]}"; do
    (cd "$ROOT" && swift build "${flags[@]}" ${product:+--product "$product"} 2>&1) | tee -a "$log" | progress_of_build
    [ "${PIPESTATUS[0]}" -eq 0 ] || build_failed "$log"
  done
}

build_failed() {
  grep -A 3 -E '^[^ ]*error:' "$1" | head -n 30 >&2
  fail "the build failed" "see $1"
}

# Shows one changing line on a terminal, otherwise a line every 30 seconds.
progress_of_build() {
  local line last=-30
  while IFS= read -r line; do
    case $line in
      \[*/*\]*)
        if [ -t 2 ]; then printf '\r    %s%.100s%s\e[K' "$dim" "$line" "$plain" >&2
        elif [ $((SECONDS - last)) -ge 30 ]; then last=$SECONDS; note "$line"; fi ;;
      *'Build complete'*) [ ! -t 2 ] || printf '\r\e[K' >&2; note "$line" ;;
    esac
  done
}

# Writes the broker's users with minimal permissions, as pushctl defines them.
write_broker_definitions() {
  local role
  for role in $("$(product pushctl)" topology roles --apps "$(next_apps_file)"); do secret "broker-$role" >/dev/null; done
  secret broker-administrator >/dev/null
  "$(product pushctl)" topology definitions --apps "$(next_apps_file)" --passwords "$STATE/secrets" \
    >"$STATE/rabbitmq-definitions.json" || fail "pushctl could not print the broker's definitions"
  chmod 600 "$STATE/rabbitmq-definitions.json"
}

create_database() {
  local exists
  exists=$(administer_database postgres "SELECT 1 FROM pg_database WHERE datname = 'heliograph'" | tr -dc 1)
  [ -n "$exists" ] || administer_database postgres "CREATE DATABASE heliograph"
}

# Creates one login per service, a member of the group role that the migrations created.
create_database_logins() {
  local service
  for service in rules token-registry feedback events-api; do
    administer_database heliograph "DO \$\$ BEGIN
      CREATE ROLE \"$service\" LOGIN IN ROLE heliograph_${service//-/_};
      EXCEPTION WHEN duplicate_object THEN NULL; END \$\$" \
      "ALTER ROLE \"$service\" PASSWORD '$(secret "database-$service")'"
  done
}

migrate() {
  DATABASE_URL_FILE=$(database_url heliograph "$(secret database-administrator)" | private_file database-url) \
    "$(product pushctl)" migrate --migrations "$ROOT/Services" || fail "the database could not be migrated"
}

apply_topology() {
  AMQP_URL_FILE=$(broker_url topology "$(secret broker-topology)" | private_file amqp-url-topology) \
    "$(product pushctl)" topology apply --apps "$(next_apps_file)" || fail "the topology could not be applied"
  # Running services serve new apps from now on.
  [ ! -f "$STATE/apps.next.yaml" ] || mv "$STATE/apps.next.yaml" "$STATE/apps.yaml"
}

# service_environment NAME: the complete environment of a service as NAME=value lines. No line holds a secret, because
# `env` receives them as arguments, which other users can read.
service_environment() {
  local service=$1
  echo "PATH=$PATH"
  echo "HELIOGRAPH_ADMIN_HOST=127.0.0.1"
  echo "HELIOGRAPH_ADMIN_PORT=$(admin_port "$service")"
  echo "HELIOGRAPH_APPS=$STATE/apps.yaml"
  echo "LOG_LEVEL=${LOG_LEVEL:-info}"
  echo "LOG_FORMAT=${LOG_FORMAT:-text}"
  [ "$service" = provider-simulator ] || [ "$service" = console ] \
    || echo "AMQP_URL_FILE=$(broker_url "$service" "$(secret "broker-$service")" | through_proxy "$service" \
      | private_file "amqp-url-$service")"
  case $service in
    rules | token-registry | feedback | events-api)
      echo "DATABASE_URL_FILE=$(database_url "$service" "$(secret "database-$service")" | through_proxy "$service" \
        | private_file "database-url-$service")" ;;
  esac
  case $service in
    rules)
      echo "RULES_DIRECTORY=${LOCAL_RULES_DIRECTORY:-$STATE/rule-files}"
      echo "RULES_HOST=127.0.0.1"
      echo "RULES_PORT=$RULES_PORT"
      echo "RULES_USER_REQUESTS=${LOCAL_USER_REQUESTS:-0}" ;;
    token-registry)
      echo "REGISTRY_HOST=127.0.0.1"
      echo "REGISTRY_PORT=$REGISTRY_PORT"
      echo "REGISTRY_OPERATOR_KEY_FILE=$(secret_file operator)"
      echo "REGISTRY_TOKEN_KEYS_FILE=$(token_keys_file)"
      # The simulated push service is on this machine.
      [ "$(providers)" != simulator ] || echo "HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS=yes"
      # No limits per user: tests and benches send as fast as they can for few users.
      echo "REGISTRY_USER_REQUESTS=${LOCAL_USER_REQUESTS:-0}"
      echo "REGISTRY_USER_CHANGES=${LOCAL_USER_CHANGES:-0}" ;;
    events-api)
      echo "EVENTS_API_HOST=127.0.0.1"
      echo "EVENTS_API_PORT=$EVENTS_API_PORT"
      echo "EVENTS_API_KEY_EVENTS=${LOCAL_KEY_EVENTS:-0}"
      echo "EVENTS_API_MATRIX_KEY_FILE=$(secret_file matrix)" ;;
    console)
      echo "CONSOLE_PORT=$CONSOLE_PORT"
      echo "CONSOLE_URL=http://127.0.0.1:$CONSOLE_PORT"
      echo "CONSOLE_RULES_URL=http://127.0.0.1:$RULES_PORT"
      echo "CONSOLE_RULES_KEY_FILE=$STATE/secrets/console-rules-key"
      echo "CONSOLE_REGISTRY_URL=http://127.0.0.1:$REGISTRY_PORT"
      echo "CONSOLE_REGISTRY_KEY_FILE=$STATE/secrets/console-registry-key"
      echo "CONSOLE_SERVICES=$(observed_services)"
      echo "CONSOLE_SESSION_KEY_FILE=$(secret_file console-session)"
      echo "CONSOLE_AUDIT_FILE=$STATE/audit.jsonl"
      echo "CONSOLE_LOGIN=development" ;;
    feedback)
      # Short, for experiments: a spike below the guard's minimum is not detected in this time.
      echo "FEEDBACK_SETTLING_TIME=${LOCAL_SETTLING_TIME:-2s}" ;;
    apns-sender)
      case $(providers) in
        simulator)
          echo "APNS_URL=https://localhost:$SIMULATOR_APNS_PORT"
          echo "APNS_SANDBOX_URL=https://localhost:$SIMULATOR_APNS_SANDBOX_PORT"
          echo "APNS_CHANNELS_URL=https://localhost:$SIMULATOR_APNS_PORT"
          echo "APNS_CHANNELS_SANDBOX_URL=https://localhost:$SIMULATOR_APNS_SANDBOX_PORT"
          echo "PROVIDER_CA_FILE=$STATE/credentials/simulator-ca.pem" ;;
        sandbox)
          echo "APNS_URL=https://api.sandbox.push.apple.com"
          echo "APNS_CHANNELS_URL=https://api-manage-broadcast.sandbox.push.apple.com:2195" ;;
      esac ;;
    fcm-sender)
      case $(providers) in
        simulator)
          echo "FCM_URL=https://localhost:$SIMULATOR_FCM_PORT"
          echo "FCM_TOKEN_URL=https://localhost:$SIMULATOR_FCM_PORT/token"
          echo "PROVIDER_CA_FILE=$STATE/credentials/simulator-ca.pem" ;;
        sandbox) echo "FCM_VALIDATE_ONLY=yes" ;;
      esac ;;
    webpush-sender)
      if [ "$(providers)" = simulator ]; then
        echo "HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS=yes"
        echo "PROVIDER_CA_FILE=$STATE/credentials/simulator-ca.pem"
      fi ;;
    provider-simulator)
      echo "SIMULATOR_HOST=127.0.0.1"
      echo "SIMULATOR_APNS_PORT=$SIMULATOR_APNS_PORT"
      echo "SIMULATOR_APNS_SANDBOX_PORT=$SIMULATOR_APNS_SANDBOX_PORT"
      echo "SIMULATOR_FCM_PORT=$SIMULATOR_FCM_PORT"
      echo "SIMULATOR_WEBPUSH_PORT=$SIMULATOR_WEBPUSH_PORT"
      echo "SIMULATOR_CONTROL_PORT=$SIMULATOR_CONTROL_PORT"
      echo "SIMULATOR_CA_FILE=$STATE/credentials/simulator-ca.pem" ;;
  esac
  # Further variables of an experiment.
  [ ! -f "$STATE/environment/$service" ] || cat "$STATE/environment/$service"
}

# The admin addresses of the stages, for the console.
observed_services() {
  local service list=
  for service in "${SERVICES[@]}"; do
    [ "$service" = provider-simulator ] || list+="${list:+,}$service=http://127.0.0.1:$(admin_port "$service")"
  done
  echo "$list"
}

# through_proxy SERVICE: replaces the ports of standard input with those of the service's proxy. The file `proxies` has
# a line "SERVICE PORT PROXY-PORT" for each; without the file, nothing is replaced.
through_proxy() {
  local service port proxy edits=()
  if [ -f "$STATE/proxies" ]; then
    while read -r service port proxy; do
      [ "$service" != "$1" ] || edits+=(-e "s/\\b\(localhost\|127\.0\.0\.1\):$port\b/\1:$proxy/g")
    done <"$STATE/proxies"
  fi
  if [ ${#edits[@]} -gt 0 ]; then sed "${edits[@]}"; else cat; fi
}

# start_service NAME
# A service starts as $STATE/executables/NAME if that exists, so that a test can run another release.
start_service() {
  is_running "$1" && return 0
  need_free_port "$(admin_port "$1")" "$1"
  local environment executable=$STATE/executables/$1
  [ -x "$executable" ] || executable=$(product "$1")
  mapfile -t environment < <(service_environment "$1" | through_proxy "$1")
  start_process "$1" env -i "${environment[@]}" "$executable"
}

service_is_ready() { curl -fsS --max-time 2 "http://127.0.0.1:$(admin_port "$1")/health/ready"; }

# await_ready SERVICE...
await_ready() {
  local service
  for service in "$@"; do
    if ! wait_until 60 "$service" service_is_ready_or_gone "$service" || ! is_running "$service"; then
      tail -n 8 "$STATE/log/$service.log" >&2
      curl -sS --max-time 2 "http://127.0.0.1:$(admin_port "$service")/health/ready" 2>/dev/null | head -c 800 >&2
      fail "$service did not become ready" "its log is $STATE/log/$service.log"
    fi
  done
}
service_is_ready_or_gone() { service_is_ready "$1" || ! is_running "$1"; }

# Writes every address and development credential, for people and scripts.
write_env() {
  (
    umask 077
    cat >"$STATE/env" <<END
# Addresses and development credentials of the local stack; written by deploy/local/up. Source it: . .local/env
export AMQP_URL='$(node_url 1 administrator "$(secret broker-administrator)")'
export AMQP_NODE_URLS='$(node_urls administrator "$(secret broker-administrator)")'
export DATABASE_URL='$(database_url heliograph "$(secret database-administrator)")'
export REGISTRY_URL='http://127.0.0.1:$REGISTRY_PORT'
export RULES_URL='http://127.0.0.1:$RULES_PORT'
export EVENTS_API_URL='http://127.0.0.1:$EVENTS_API_PORT'
export CONSOLE_URL='http://127.0.0.1:$CONSOLE_PORT'
export FEEDBACK_URL='http://127.0.0.1:$(admin_port feedback)'
export SIMULATOR_URL='http://127.0.0.1:$SIMULATOR_CONTROL_PORT'
export APNS_URL='https://localhost:$SIMULATOR_APNS_PORT'
export APNS_SANDBOX_URL='https://localhost:$SIMULATOR_APNS_SANDBOX_PORT'
export APNS_CHANNELS_URL='https://localhost:$SIMULATOR_APNS_PORT'
export APNS_CHANNELS_SANDBOX_URL='https://localhost:$SIMULATOR_APNS_SANDBOX_PORT'
export FCM_URL='https://localhost:$SIMULATOR_FCM_PORT'
export WEBPUSH_URL='https://localhost:$SIMULATOR_WEBPUSH_PORT'
export PROVIDER_CA_FILE='$STATE/credentials/simulator-ca.pem'
export REGISTRY_OPERATOR_KEY='$(secret operator)'
export REGISTRY_TOKEN_KEYS_FILE='$(token_keys_file)'
export HELIOGRAPH_APPS='$STATE/apps.yaml'
export BEARER_SECRET_FILE='$STATE/credentials/bearer.secret'
END
  )
}

# Checks that every port is free before anything starts.
need_free_ports() {
  local service
  local node running=false
  for node in $(nodes); do
    if is_running "broker$(node_suffix "$node")"; then running=true; continue; fi
    need_free_port "${AMQP_PORTS[$node]}" "the private RabbitMQ node"
    need_free_port "${DIST_PORTS[$node]}" "the private RabbitMQ node's Erlang distribution"
  done
  $running || need_free_port "$EPMD_PORT" "the private RabbitMQ node's epmd"
  is_running database || need_free_port "$POSTGRES_PORT" "the private Postgres cluster"
  [ "$STANDBY" = no ] || is_running database-standby || need_free_port "$STANDBY_PORT" "the private Postgres standby"
  if ! is_running provider-simulator; then
    for service in APNS APNS_SANDBOX FCM WEBPUSH CONTROL; do
      local name=SIMULATOR_${service}_PORT
      need_free_port "${!name}" "the provider simulator"
    done
  fi
  is_running token-registry || need_free_port "$REGISTRY_PORT" "the token registry"
  is_running rules || need_free_port "$RULES_PORT" "rules"
  is_running events-api || need_free_port "$EVENTS_API_PORT" "events-api"
  for service in "${SERVICES[@]}"; do
    is_running "$service" || need_free_port "$(admin_port "$service")" "$service's health and metrics"
  done
}

# Starts the broker with its users, ready for `pushctl topology apply`.
start_bus() {
  prepare_credentials
  local node running=true
  for node in $(nodes); do is_running "broker$(node_suffix "$node")" || running=false; done
  if ! $running; then
    if [ "$NODES" -eq 1 ]; then say "Starting a private RabbitMQ node on port $AMQP_PORT"
    else say "Starting $NODES private RabbitMQ nodes on ports ${AMQP_PORTS[*]}"; fi
    write_broker_definitions
    write_broker_configuration "$STATE/rabbitmq-definitions.json"
    write_rabbitmqctl
    start_broker
  elif [ -f "$STATE/run/app-folders" ]; then
    # The users of new apps. Passwords of known users stay.
    write_broker_definitions
    "$STATE/rabbitmqctl" -q import_definitions "$STATE/rabbitmq-definitions.json" >/dev/null \
      || fail "the broker could not import the users of the new apps"
  fi
}

start_stack() {
  need_free_ports
  mkdir -p "$STATE/run"
  echo "$PORT_BASE" >"$STATE/run/port-base"
  start_bus
  if ! is_running database; then
    say "Starting a private Postgres cluster on port $POSTGRES_PORT"
    start_database
  fi
  [ "$STANDBY" = no ] || start_standby
  create_database
  say "Applying the topology and the migrations"
  apply_topology
  migrate
  create_database_logins
  write_env
  say "Starting the simulator and the services"
  start_service provider-simulator
  wait_until 20 "the simulator's certificate" test -s "$STATE/credentials/simulator-ca.pem" || await_ready provider-simulator
  local service
  for service in "${SERVICES[@]}"; do start_service "$service"; done
  await_ready "${SERVICES[@]}"
}

# Stops everything that this stack started, in reverse order.
stop_stack() {
  local service pids=()
  for service in console "${SERVICES[@]}"; do
    stop_process "$service" 40 &
    pids+=($!)
  done
  wait "${pids[@]}"
  stop_broker
  stop_database
  rm -f "$STATE"/run/{port-base,app-folders,providers}
}
