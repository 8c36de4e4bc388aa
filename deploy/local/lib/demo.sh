# The demonstration: registers phones and a browser over HTTP, publishes a chat message and a radar question, and prints the pushes.
# Sourced.

demo_folder=$ROOT/deploy/local/demo

# demo_token APP PERSON: a generated device token, the same in every run.
demo_token() { printf '%s' "heliograph demo $1 $2" | sha256sum | cut -c 1-64; }

# register APP PERSON PLATFORM ENVIRONMENT
register() {
  local bearer token answer
  bearer=$("$(product pushctl)" token mint --app "$1" --user "$2" --apps "$STATE/apps.yaml") || fail "no bearer token for $2"
  token=$(demo_token "$1" "$2")
  [ "$3" != android ] || token=demo:$token
  answer=$(curl -sS --max-time 10 -H @<(printf 'Authorization: Bearer %s\n' "$bearer") -H 'Content-Type: application/json' \
    -d "{\"token\":\"$token\",\"platform\":\"$3\",\"environment\":\"$4\"}" \
    "http://127.0.0.1:$REGISTRY_PORT/api/notifications/push/register")
  [ "$(jq -r .success <<<"$answer" 2>/dev/null)" = true ] || fail "the registry rejected $2's device: $answer"
}

# register_browser APP PERSON: subscribes a new browser at the simulator. It replaces the person's earlier one.
register_browser() {
  local bearer subscription
  bearer=$("$(product pushctl)" token mint --app "$1" --user "$2" --apps "$STATE/apps.yaml") || fail "no bearer token for $2"
  subscription=$(curl -fsS --max-time 10 -d "{\"app\":\"$1\"}" "http://127.0.0.1:$SIMULATOR_CONTROL_PORT/subscriptions") \
    || fail "the simulator created no subscription"
  jq '{registrations: [{kind: "web-push", subscription: {endpoint, expirationTime, keys}}]}' <<<"$subscription" \
    | curl -fsS --max-time 10 -X PUT -H @<(printf 'Authorization: Bearer %s\n' "$bearer") -H 'Content-Type: application/json' \
      -d @- "http://127.0.0.1:$REGISTRY_PORT/v1/installations/demo-browser-$2" >/dev/null \
    || fail "the registry rejected $2's browser"
}

# publish_demo APP FILE: publishes with a new id, so that every run is a new event.
publish_demo() {
  jq --arg id "demo-$(date +%s)-$RANDOM" '.id = $id' "$demo_folder/$2" \
    | AMQP_URL=$(broker_url "upstream-$1" "$(secret "broker-upstream-$1")") \
      "$(product pushctl)" publish --app "$1" --apps "$STATE/apps.yaml" - || fail "the event $2 could not be published"
}

requests_logged() {
  curl -fsS --max-time 5 "http://127.0.0.1:$SIMULATOR_CONTROL_PORT/$1/requests" | jq '.requests | length'
}

demo_arrived() {
  [ "$(requests_logged apns)" -ge "$1" ] && [ "$(requests_logged fcm)" -ge "$2" ] && [ "$(requests_logged webpush)" -ge "$3" ]
}

run_demo() {
  say "Registering the demo's phones and browser"
  local before_apns before_fcm before_webpush
  before_apns=$(requests_logged apns)
  before_fcm=$(requests_logged fcm)
  before_webpush=$(requests_logged webpush)
  register family-portal 456 ios production
  register family-portal 457 ios production
  register family-portal 458 android production
  register_browser family-portal 457
  register hide-and-seek hider-1 ios production
  register hide-and-seek seeker-1 ios development
  say "Publishing a chat message of Pat (456) and a radar question to the hider"
  publish_demo family-portal chat-message-created.json
  publish_demo hide-and-seek radar-question-asked.json
  if ! wait_until 30 "the phones" demo_arrived $((before_apns + 2)) $((before_fcm + 1)) $((before_webpush + 1)); then
    fail "the demo's pushes did not arrive within 30 s" "the services' logs are in $STATE/log"
  fi
  say "What the phones and the browser received"
  show_requests apns "$before_apns"
  show_requests fcm "$before_fcm"
  show_requests webpush "$before_webpush"
}

# show_requests PROVIDER SKIP
show_requests() {
  curl -fsS "http://127.0.0.1:$SIMULATOR_CONTROL_PORT/$1/requests" | jq -r --argjson skip "$2" --arg provider "$1" '
    .requests[$skip:][] |
    (if $provider == "apns" then .body.aps.alert elif $provider == "fcm" then .body.message.notification
      else .body.notification end) as $alert |
    (if $provider == "apns" then (.headers["apns-topic"] // "") elif $provider == "fcm" then "FCM" else "Web Push" end) as $where |
    "    \($provider)  \(.token[0:12])…  \($where)  → \(.status)\n        \($alert.title // "(silent)"): \($alert.body // "")"' >&2
}

print_addresses() {
  say "Addresses"
  [ "${LOCAL_CONSOLE:-yes}" = no ] || note "console        http://127.0.0.1:$CONSOLE_PORT/   (a development login; shows why people did or did not get a push)"
  note "phones         http://127.0.0.1:$SIMULATOR_CONTROL_PORT/"
  note "request log    http://127.0.0.1:$SIMULATOR_CONTROL_PORT/apns/requests"
  note "registry       POST http://127.0.0.1:$REGISTRY_PORT/api/notifications/push/register"
  note "events         POST http://127.0.0.1:$EVENTS_API_PORT/v1/events"
  note "metrics        http://127.0.0.1:$(admin_port rules)/metrics   (rules; each service has its own port)"
  note "logs           $STATE/log/"
  local page="Your first event in README.md"
  [ ! -s "$STATE/run/app-folders" ] || page="step 4 of deploy/operations/your-own-app.md"
  note "join in        . $STATE/env    then see $page"
}
