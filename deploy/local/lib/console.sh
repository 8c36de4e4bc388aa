# The console of a stack: its API keys and its process. Sourced after stack.sh.

# console_key SERVICE FILE OPERATION...: prints the path of the console's API key for a service, created on first use.
console_key() {
  local service=$1 file=$2 path=$STATE/secrets/$2 options=(--all-apps) operation
  shift 2
  if [ ! -s "$path" ]; then
    for operation in "$@"; do options+=(--may "$operation"); done
    DATABASE_URL=$(database_url heliograph "$(secret database-administrator)") \
      "$(product pushctl)" keys create --service "$service" --name console "${options[@]}" | private_file "$file" >/dev/null
  fi
  [ -s "$path" ] || fail "the console has no API key for $service" "see the lines above"
  echo "$path"
}

# LOCAL_CONSOLE=no starts none.
start_console() {
  [ "${LOCAL_CONSOLE:-yes}" != no ] || return 0
  is_running console && return
  need_free_port "$CONSOLE_PORT" "the console"
  console_key rules console-rules events:read counts:read preferences:read notifications:revoke >/dev/null
  console_key registry console-registry devices:read devices:deactivate counts:read >/dev/null
  start_service console
  await_ready console
}
