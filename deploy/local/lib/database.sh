# A private Postgres cluster with its own data folder, port and passwords, and its standby. Postgres refuses to run as
# root, so root runs it as the user `postgres`. Sourced.

postgres_bin() {
  local folder
  if [ "$DATABASE" = 17 ]; then
    echo /usr/lib/postgresql/17/bin
    return
  fi
  folder=$(find /usr/lib/postgresql -maxdepth 1 -mindepth 1 -printf '%f\n' 2>/dev/null | sort -n | tail -n 1)
  [ -n "$folder" ] || fail "no Postgres server is installed" "install the Debian package postgresql"
  echo "/usr/lib/postgresql/$folder/bin"
}

# A command prefix that switches to the database user; empty for an ordinary user.
database_user=()
[ "$(id -u)" -ne 0 ] || database_user=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/tmp)
as_database_user() { "${database_user[@]}" "$@"; }

# run_postgres COMMAND...: runs a Postgres program of the chosen version as the database user.
run_postgres() { "${database_system[@]}" "${database_user[@]}" "$@"; }

database_answers() { run_postgres "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "${1:-$POSTGRES_PORT}"; }

# The data folder is in STATE. If root's STATE is not accessible for the user postgres, it is in /var/tmp under a name
# derived from STATE.
database_folder() {
  local folder=$STATE/postgres
  mkdir -p "$folder"
  if [ "$(id -u)" -eq 0 ]; then
    chown postgres: "$folder"
    if ! as_database_user test -x "$folder" 2>/dev/null; then
      folder=/var/tmp/heliograph-$(printf %s "$STATE" | sha256sum | cut -c 1-12)
      mkdir -p "$folder" && chown postgres: "$folder"
    fi
  fi
  chmod 700 "$folder"
  echo "$folder"
}

# start_database: initialises the cluster once, starts it, and returns when it accepts connections.
start_database() {
  is_running database && return 0
  need_free_port "$POSTGRES_PORT" "the private Postgres cluster"
  local bin folder
  bin=$(postgres_bin)
  folder=$(database_folder)
  [ ! -e "$folder/promoted" ] || fail "the standby was promoted, so the former primary has no current data" \
    "delete the data with deploy/local/down --erase"
  if [ ! -f "$folder/data/PG_VERSION" ] && ! as_database_user test -f "$folder/data/PG_VERSION"; then
    log_folder
    secret database-administrator | as_database_user sh -c 'umask 077 && cat >"$1"' - "$folder/password"
    run_postgres "$bin/initdb" -D "$folder/data" -U heliograph -E UTF8 --locale=C.UTF-8 --no-sync \
      --auth=scram-sha-256 --pwfile="$folder/password" >"$STATE/log/initdb.log" 2>&1 \
      || { tail -n 10 "$STATE/log/initdb.log" >&2; fail "initdb failed" "see $STATE/log/initdb.log"; }
    rm -f "$folder/password"
  fi
  launch_database database "$folder/data" "$POSTGRES_PORT"
}

# launch_database PROCESS FOLDER PORT: returns when it accepts connections.
launch_database() {
  # Unix socket paths are limited to 107 bytes; TCP on loopback is enough.
  start_process "$1" "${database_system[@]}" "${database_user[@]}" "$(postgres_bin)/postgres" -D "$2" -p "$3" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 \
    -c shared_buffers="${LOCAL_DATABASE_BUFFERS:-128MB}" \
    "${POSTGRES_OPTIONS[@]}"
  if ! wait_until 60 "Postgres" database_answers "$3"; then
    tail -n 20 "$STATE/log/$1.log" >&2
    fail "Postgres did not start within 60 s" "its log is $STATE/log/$1.log"
  fi
}

# start_standby: copies the primary once, starts the copy as its streaming standby, and makes the primary's commits wait
# for it.
start_standby() {
  is_running database-standby && return 0
  need_free_port "$STANDBY_PORT" "the private Postgres standby"
  local folder
  folder=$(database_folder)
  if ! as_database_user test -f "$folder/standby/PG_VERSION"; then
    rm -rf "$folder/standby" # an interrupted copy
    local log=$STATE/log/standby-copy.log
    PGPASSWORD=$(secret database-administrator) run_postgres "$(postgres_bin)/pg_basebackup" --no-sync \
      --pgdata="$folder/standby" --checkpoint=fast --wal-method=stream --create-slot --slot=standby \
      --write-recovery-conf --dbname="host=127.0.0.1 port=$POSTGRES_PORT user=heliograph application_name=standby" \
      >"$log" 2>&1 || { tail -n 10 "$log" >&2; fail "pg_basebackup failed" "see $log"; }
  fi
  launch_database database-standby "$folder/standby" "$STANDBY_PORT"
  administer_database postgres \
    "ALTER SYSTEM SET synchronous_standby_names = 'standby'" "SELECT pg_reload_conf()" >/dev/null
  wait_until 30 "the synchronous standby" standby_is_synchronous \
    || fail "the standby does not stream" "its log is $STATE/log/database-standby.log"
}

standby_is_synchronous() {
  administer_database postgres \
    "SELECT 'synchronous' FROM pg_stat_replication WHERE application_name = 'standby' AND sync_state = 'sync'" \
    | grep -q synchronous
}

# promote_standby: makes the standby the primary. The former primary must not run and cannot start again.
promote_standby() {
  local folder
  folder=$(database_folder)
  is_running database-standby || fail "database-standby is not running"
  ! is_running database || fail "the primary is running" "stop it first: deploy/local/service kill database"
  touch "$folder/promoted"
  run_postgres "$(postgres_bin)/pg_ctl" promote -D "$folder/standby" -t 60 >>"$STATE/log/database-standby.log" 2>&1 \
    || fail "the standby was not promoted" "its log is $STATE/log/database-standby.log"
}

# stop_database [PROCESS...]: stops the primary before its standby. INT is a fast shutdown in Postgres.
stop_database() {
  local process pid
  [ $# -gt 0 ] || set -- database database-standby
  for process in "$@"; do
    pid=$(pid_of "$process") || continue
    kill -INT "$pid" 2>/dev/null
    stop_process "$process" 30
  done
}

# database_url USER PASSWORD [DATABASE]: with a standby, the URL with both addresses.
database_url() {
  local hosts=127.0.0.1:$POSTGRES_PORT options=
  [ "$STANDBY" = no ] || hosts+=",127.0.0.1:$STANDBY_PORT" options="?target_session_attrs=read-write"
  echo "postgresql://$1:$2@$hosts/${3:-heliograph}$options"
}

# write_receivewal: writes a pg_receivewal command of the server's version. It refuses a newer server.
write_receivewal() {
  {
    echo '#!/bin/bash'
    printf 'exec'
    printf ' %q' "${database_system[@]}" "$(postgres_bin)/pg_receivewal"
    echo ' "$@"'
  } >"$STATE/pg_receivewal"
  chmod 755 "$STATE/pg_receivewal"
}

# administer_database DATABASE SQL...: runs SQL as the cluster's administrator, up to the first error. Uses standard
# input, because other users of the machine can read process arguments.
administer_database() {
  local database=$1
  shift
  printf '%s;\n' "$@" | PGPASSWORD=$(secret database-administrator) psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 \
    -p "$POSTGRES_PORT" -U heliograph -d "$database" -f -
}
