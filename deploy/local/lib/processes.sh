# Starts and stops processes. A file per process holds its pid and start time, so that a reused pid is never signalled.
# Sourced.

started_at() { awk '{print $22}' "/proc/$1/stat" 2>/dev/null; }

# record_pid NAME PID
record_pid() {
  mkdir -p "$STATE/run"
  echo "$2 $(started_at "$2")" >"$STATE/run/$1.pid"
}

# pid_of NAME: prints the pid if the process still runs.
pid_of() {
  local pid start
  read -r pid start 2>/dev/null <"$STATE/run/$1.pid" || return 1
  [ -n "$start" ] && [ "$(started_at "$pid")" = "$start" ] && echo "$pid"
}

is_running() { pid_of "$1" >/dev/null; }

# stop_process NAME [SECONDS]: sends TERM, and KILL after the timeout.
stop_process() {
  local pid
  pid=$(pid_of "$1") || { rm -f "$STATE/run/$1.pid"; return 0; }
  kill -TERM "$pid" 2>/dev/null
  if ! wait_until "${2:-30}" "$1 to stop" not_running "$1"; then
    note "$1 did not stop in ${2:-30} s; killing it"
    kill -KILL "$pid" 2>/dev/null
    wait_until 5 "$1 to end" not_running "$1"
  fi
  rm -f "$STATE/run/$1.pid"
}

not_running() { ! is_running "$1"; }

# start_process NAME COMMAND...: starts it in its own session, so that Ctrl-C reaches only the script, with its own log.
start_process() {
  local name=$1
  shift
  mkdir -p "$STATE/run"
  log_folder
  setsid "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null 8>&- &
  record_pid "$name" $!
  disown $!
}
