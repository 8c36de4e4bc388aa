# The console of a stack: its API keys and its process. Sourced after stack.sh.

# LOCAL_CONSOLE=no starts none.
start_console() {
  [ "${LOCAL_CONSOLE:-yes}" != no ] || return 0
  is_running console && return
  need_free_port "$CONSOLE_PORT" "the console"
  DATABASE_URL_FILE=$(database_url heliograph "$(secret database-administrator)" | private_file database-url) \
    PUSHCTL=$(product pushctl) "$ROOT/deploy/compose/console-keys" "$STATE/secrets" \
    || fail "the console has no API keys" "see the lines above"
  start_service console
  await_ready console
}
