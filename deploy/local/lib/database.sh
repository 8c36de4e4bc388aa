# A private Postgres cluster with its own data folder, port and passwords. Postgres refuses to run as root, so root runs
# it as the user `postgres`. Sourced.

postgres_bin() {
  local folder
  folder=$(find /usr/lib/postgresql -maxdepth 1 -mindepth 1 -printf '%f\n' 2>/dev/null | sort -n | tail -n 1)
  [ -n "$folder" ] || fail "no Postgres server is installed" "install the Debian package postgresql"
  echo "/usr/lib/postgresql/$folder/bin"
}

# A command prefix that switches to the database user; empty for an ordinary user.
database_user=()
[ "$(id -u)" -ne 0 ] || database_user=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/tmp)
as_database_user() { "${database_user[@]}" "$@"; }

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
  if [ ! -f "$folder/data/PG_VERSION" ] && ! as_database_user test -f "$folder/data/PG_VERSION"; then
    log_folder
    secret database-administrator | as_database_user sh -c 'umask 077 && cat >"$1"' - "$folder/password"
    as_database_user "$bin/initdb" -D "$folder/data" -U heliograph -E UTF8 --locale=C.UTF-8 --no-sync \
      --auth=scram-sha-256 --pwfile="$folder/password" >"$STATE/log/initdb.log" 2>&1 \
      || { tail -n 10 "$STATE/log/initdb.log" >&2; fail "initdb failed" "see $STATE/log/initdb.log"; }
    rm -f "$folder/password"
  fi
  # Unix socket paths are limited to 107 bytes; TCP on loopback is enough.
  start_process database "${database_user[@]}" "$bin/postgres" -D "$folder/data" -p "$POSTGRES_PORT" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 \
    -c shared_buffers="${LOCAL_DATABASE_BUFFERS:-128MB}" \
    "${POSTGRES_OPTIONS[@]}"
  if ! wait_until 60 "Postgres" "$bin/pg_isready" -q -h 127.0.0.1 -p "$POSTGRES_PORT"; then
    tail -n 20 "$STATE/log/database.log" >&2
    fail "Postgres did not start within 60 s" "its log is $STATE/log/database.log"
  fi
}

# INT is a fast shutdown in Postgres.
stop_database() {
  local pid
  pid=$(pid_of database) || return 0
  kill -INT "$pid" 2>/dev/null
  stop_process database 30
}

database_url() { echo "postgresql://$1:$2@127.0.0.1:$POSTGRES_PORT/${3:-heliograph}"; }

# administer_database DATABASE SQL...: runs SQL as the cluster's administrator, up to the first error. Uses standard
# input, because other users of the machine can read process arguments.
administer_database() {
  local database=$1
  shift
  printf '%s;\n' "$@" | PGPASSWORD=$(secret database-administrator) psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 \
    -p "$POSTGRES_PORT" -U heliograph -d "$database" -f -
}
