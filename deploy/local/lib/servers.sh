# The versions of broker and database, the number of broker nodes, and the database's standby. Sourced before broker.sh
# and database.sh.

# A Debian 13 system with RabbitMQ 4 and Postgres 17. All stacks share it.
DEBIAN_13=${LOCAL_CACHE:-${HOME:-/root}/.cache/heliograph}/debian-13
DEBIAN_13_PACKAGES=rabbitmq-server,postgresql

# A command prefix: the command runs in a mount namespace of its own, with /usr of the Debian 13 system. All other
# folders, ports and process ids are those of this machine. The mount ends with the command's processes.
in_debian_13=(unshare --mount sh -c 'mount --bind "$0" /usr && exec "$@"' "$DEBIAN_13/usr")

# take_server_options ARGUMENT...: exports the choices of the server options, and puts all other arguments into
# ARGUMENTS.
take_server_options() {
  ARGUMENTS=()
  while [ $# -gt 0 ]; do
    case $1 in
      --broker | --database | --nodes)
        [ $# -gt 1 ] || fail "$1 needs a value"
        local name=${1#--}
        export "LOCAL_${name^^}=$2"
        shift ;;
      --standby) export LOCAL_STANDBY=yes ;;
      *) ARGUMENTS+=("$1") ;;
    esac
    shift
  done
}

# server_choice NAME DEFAULT VALUE...: prints the choice of LOCAL_NAME, the choice that the data in STATE belongs to, or
# the default.
server_choice() {
  local name=$1 default=$2 variable=LOCAL_${1^^} kept choice
  kept=$(cat "$STATE/servers/$name" 2>/dev/null)
  # The data of an earlier release has no record of its servers.
  [ -n "$kept" ] || [ ! -d "$STATE/secrets" ] || [ ! -d "$STATE/rabbitmq/data" ] || kept=$default
  choice=${!variable:-${kept:-$default}}
  shift 2
  case " $* " in *" $choice "*) ;; *) fail "$variable=$choice is unknown" "choose one of: $*" ;; esac
  [ -z "$kept" ] || [ "$kept" = "$choice" ] || fail "the data in $STATE belongs to $variable=$kept" \
    "use that, delete the data with deploy/local/down --erase, or choose another folder: LOCAL_STATE=<folder>"
  echo "$choice"
}

# choose_servers: sets BROKER, DATABASE, NODES and STANDBY.
choose_servers() {
  BROKER=$(server_choice broker installed installed 4) || exit 1
  DATABASE=$(server_choice database installed installed 17) || exit 1
  NODES=$(server_choice nodes 1 1 3) || exit 1
  STANDBY=$(server_choice standby no no yes) || exit 1
  broker_system=() database_system=()
  [ "$BROKER" != 4 ] || broker_system=("${in_debian_13[@]}")
  [ "$DATABASE" != 17 ] || database_system=("${in_debian_13[@]}")
}

# kept_servers: as choose_servers, for the existing data only.
kept_servers() {
  unset LOCAL_BROKER LOCAL_DATABASE LOCAL_NODES LOCAL_STANDBY
  choose_servers
}

# prepare_servers: creates the Debian 13 system if it is needed, and records the choices with the data.
prepare_servers() {
  if [ "$BROKER" = 4 ] || [ "$DATABASE" = 17 ]; then need_debian_13; fi
  mkdir -p "$STATE/servers"
  echo "$BROKER" >"$STATE/servers/broker"
  echo "$DATABASE" >"$STATE/servers/database"
  echo "$NODES" >"$STATE/servers/nodes"
  echo "$STANDBY" >"$STATE/servers/standby"
}

debian_13_works() {
  [ -d "$DEBIAN_13/usr" ] && "${in_debian_13[@]}" sh -c '/usr/lib/postgresql/17/bin/postgres --version \
    && test -x /usr/lib/rabbitmq/bin/rabbitmq-server && erl -noshell -eval "halt()."' >/dev/null 2>&1
}

# need_debian_13: creates the system once; replaces it if its servers do not run.
need_debian_13() {
  [ "$(id -u)" -eq 0 ] || fail "RabbitMQ 4 and Postgres 17 run from a Debian 13 system, which needs root" \
    "run this as root, or without LOCAL_BROKER and LOCAL_DATABASE"
  mkdir -p "$(dirname "$DEBIAN_13")" || fail "the folder of $DEBIAN_13 cannot be created" "set LOCAL_CACHE=<folder>"
  # Other scripts wait until the system is complete.
  exec 7>"$DEBIAN_13.lock"
  flock 7
  debian_13_works || create_debian_13
  exec 7>&-
}

create_debian_13() {
  local new=$DEBIAN_13.new
  install_packages debootstrap
  say "Creating a Debian 13 system with RabbitMQ 4 and Postgres 17 in $DEBIAN_13 (about a minute, 0.8 GB)"
  rm -rf --one-file-system "$new"
  # debootstrap mounts file systems in the new system. They end with its mount namespace, even if it is interrupted.
  unshare --mount debootstrap --variant=minbase --include="$DEBIAN_13_PACKAGES" trixie "$new" \
    http://deb.debian.org/debian >"$DEBIAN_13.log" 2>&1 7>&- \
    || { tail -n 5 "$DEBIAN_13.log" >&2; fail "debootstrap failed" "see $DEBIAN_13.log"; }
  rm -f "$new"/var/cache/apt/archives/*.deb
  rm -rf --one-file-system "$DEBIAN_13"
  mv "$new" "$DEBIAN_13"
  debian_13_works || fail "the servers in $DEBIAN_13 do not run" "see $DEBIAN_13.log"
}
