# Processes that these scripts start, and only those: each has a file with its pid and its start time, so that a
# pid which the kernel has handed to somebody else is never signalled. Sourced.

started_at() { awk '{print $22}' "/proc/$1/stat" 2>/dev/null; }

# remember NAME PID
remember() {
  mkdir -p "$STATE/run"
  echo "$2 $(started_at "$2")" >"$STATE/run/$1.pid"
}

# pid_of NAME: the pid if that very process is still there.
pid_of() {
  local pid start
  read -r pid start 2>/dev/null <"$STATE/run/$1.pid" || return 1
  [ -n "$start" ] && [ "$(started_at "$pid")" = "$start" ] && echo "$pid"
}

is_running() { pid_of "$1" >/dev/null; }

# stop_process NAME [SECONDS]: TERM, and KILL when it has not gone in time.
stop_process() {
  local pid
  pid=$(pid_of "$1") || { rm -f "$STATE/run/$1.pid"; return 0; }
  kill -TERM "$pid" 2>/dev/null
  if ! wait_until "${2:-30}" "$1 to stop" not_running "$1"; then
    note "$1 did not stop in ${2:-30} s; killing it"
    kill -KILL "$pid" 2>/dev/null
    wait_until 5 "$1 to die" not_running "$1"
  fi
  rm -f "$STATE/run/$1.pid"
}

not_running() { ! is_running "$1"; }

# start_process NAME COMMAND...: in its own session, so that a Ctrl-C here is ours to translate; log beside it.
start_process() {
  local name=$1
  shift
  mkdir -p "$STATE/run"
  log_folder
  setsid "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null 8>&- &
  remember "$name" $!
  disown $!
}
