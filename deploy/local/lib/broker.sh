# A private RabbitMQ broker with its own data, ports, epmd and cookie: one node, or a cluster of NODES nodes. Works as
# root and as an ordinary user. Sourced.

RABBITMQ_BIN=/usr/lib/rabbitmq/bin

# The names of a node's processes are `broker` and `broker-launcher`, with the suffix `-NODE` after the first node.
node_suffix() { [ "$1" -eq 1 ] || echo "-$1"; }
node_home() { [ "$1" -eq 1 ] && echo "$STATE/rabbitmq" || echo "$STATE/rabbitmq/node-$1"; }
node_name() { echo "heliograph-$PORT_BASE$(node_suffix "$1")@localhost"; }
nodes() { seq 1 "$NODES"; }

# broker_environment NODE
broker_environment() {
  local home
  home=$(node_home "$1")
  RABBITMQ_NODENAME=$(node_name "$1")
  export RABBITMQ_NODENAME
  export HOME=$STATE/rabbitmq # Erlang keeps its cookie here
  export RABBITMQ_CONF_ENV_FILE=$home/empty.conf # never the system's
  export RABBITMQ_CONFIG_FILE=$home/rabbitmq
  export RABBITMQ_ENABLED_PLUGINS_FILE=$home/enabled_plugins
  export RABBITMQ_MNESIA_BASE=$home/data RABBITMQ_LOG_BASE=$home/log RABBITMQ_PID_FILE=$home/pid
  export RABBITMQ_DIST_PORT=${DIST_PORTS[$1]} ERL_EPMD_PORT=$EPMD_PORT ERL_EPMD_ADDRESS=127.0.0.1
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
  export ERL_CRASH_DUMP=$home/log/erl_crash.dump
  unset RABBITMQ_HOME
}

# write_broker_configuration [DEFINITIONS-FILE]: writes the configuration of every node.
write_broker_configuration() {
  local node
  for node in $(nodes); do write_node_configuration "$node" "$@"; done
  # All nodes share the cookie, so it exists before the first node starts.
  local cookie=$STATE/rabbitmq/.erlang.cookie
  [ -s "$cookie" ] || (umask 077 && random_secret >"$cookie" && chmod 400 "$cookie")
}

# write_node_configuration NODE [DEFINITIONS-FILE]
write_node_configuration() {
  local home
  home=$(node_home "$1")
  mkdir -p "$home/data" "$home/log"
  : >"$home/empty.conf"
  echo '[].' >"$home/enabled_plugins"
  {
    echo "listeners.tcp.1 = 127.0.0.1:${AMQP_PORTS[$1]}"
    echo "default_user = heliograph"
    echo "default_pass = $(secret broker-administrator)"
    echo "default_vhost = heliograph"
    # The same log settings and message size limit as in production.
    grep -E '^(raft\.|max_message_size)' "$ROOT/deploy/rabbitmq/rabbitmq.conf"
    echo "disk_free_limit.absolute = 200MB"
    echo "log.file.level = warning"
    [ -z "${2:-}" ] || echo "load_definitions = $2"
    if [ "$NODES" -gt 1 ]; then
      echo "cluster_formation.peer_discovery_backend = classic_config"
      local node
      for node in $(nodes); do echo "cluster_formation.classic_config.nodes.$node = $(node_name "$node")"; done
      echo "cluster_partition_handling = pause_minority"
    fi
  } >"$home/rabbitmq.conf"
  chmod 600 "$home/rabbitmq.conf"
}

# node_answers NODE
node_answers() { port_is_open "${AMQP_PORTS[$1]}" && is_running "broker$(node_suffix "$1")"; }
broker_answers() { node_answers 1; }

session_is_over() { ! pgrep -s "$1" >/dev/null; }

node_started_or_died() { port_is_open "${AMQP_PORTS[$1]}" || ! is_running "broker-launcher$(node_suffix "$1")"; }

# start_broker: starts every node, and returns when all accept connections.
start_broker() {
  local node
  for node in $(nodes); do
    launch_node "$node"
    # The first node starts epmd. A second epmd at the same moment would fail its node.
    [ "$NODES" -eq 1 ] || wait_until 30 "epmd" port_is_open "$EPMD_PORT" || fail "epmd did not start" "see $STATE/log"
  done
  for node in $(nodes); do await_node "$node"; done
  [ "$NODES" -eq 1 ] || "$STATE/rabbitmqctl" await_online_nodes "$NODES" --timeout 60 >/dev/null \
    || fail "the $NODES RabbitMQ nodes formed no cluster" "their logs are in $STATE/rabbitmq"
}

# start_node NODE: returns when it accepts connections.
start_node() { launch_node "$1" && await_node "$1"; }

launch_node() {
  local suffix
  suffix=$(node_suffix "$1")
  ! is_running "broker$suffix" || return 0
  need_free_port "${AMQP_PORTS[$1]}" "the private RabbitMQ node"
  need_free_port "${DIST_PORTS[$1]}" "the private RabbitMQ node's Erlang distribution"
  rm -f "$(node_home "$1")/pid"
  (
    broker_environment "$1"
    start_process "broker-launcher$suffix" "${broker_system[@]}" "$RABBITMQ_BIN/rabbitmq-server"
  )
}

await_node() {
  local suffix home
  suffix=$(node_suffix "$1") home=$(node_home "$1")
  ! is_running "broker$suffix" || return 0
  if ! wait_until 240 "RabbitMQ" node_started_or_died "$1" || ! port_is_open "${AMQP_PORTS[$1]}"; then
    tail -n 20 "$STATE/log/broker-launcher$suffix.log" >&2
    fail "RabbitMQ did not start within 240 s" "its log is in $home/log"
  fi
  wait_until 10 "RabbitMQ's pid" test -s "$home/pid"
  record_pid "broker$suffix" "$(cat "$home/pid")"
}

# stop_broker: stops every node with TERM, and the private epmd.
stop_broker() {
  local node pids=()
  for node in $(nodes); do
    stop_node "$node" &
    pids+=($!)
  done
  wait "${pids[@]}"
  [ -z "$(command -v epmd)" ] || wait_until 20 "epmd to stop" epmd_is_gone
}

# stop_node NODE
stop_node() {
  local launcher suffix
  suffix=$(node_suffix "$1")
  stop_process "broker$suffix" 60
  # A node that was interrupted during its start is only known by its launcher, which leads its own session.
  if launcher=$(pid_of "broker-launcher$suffix"); then
    kill -TERM -- "-$launcher" 2>/dev/null
    wait_until 20 "the broker's launcher to stop" session_is_over "$launcher" || kill -KILL -- "-$launcher" 2>/dev/null
  fi
  rm -f "$STATE/run/broker-launcher$suffix.pid"
}

# Repeats the request: epmd refuses to stop until it notices that its node is gone.
epmd_is_gone() {
  port_is_open "$EPMD_PORT" || return 0
  ERL_EPMD_PORT=$EPMD_PORT epmd -kill
  ! port_is_open "$EPMD_PORT"
}

# node_urls USER PASSWORD: the URLs of all nodes, separated by spaces.
node_urls() {
  local node
  for node in $(nodes); do node_url "$node" "$@"; done | paste -sd ' '
}

# broker_url USER PASSWORD [VHOST]: the URL with the addresses of all nodes.
broker_url() {
  local node hosts=
  for node in $(nodes); do hosts+=",127.0.0.1:${AMQP_PORTS[$node]}"; done
  echo "amqp://$1:$2@${hosts#,}/${3:-heliograph}"
}

# node_url NODE USER PASSWORD
node_url() { echo "amqp://$2:$3@127.0.0.1:${AMQP_PORTS[$1]}/heliograph"; }

# write_rabbitmqctl: writes a rabbitmqctl command for each node.
write_rabbitmqctl() {
  local node
  for node in $(nodes); do write_node_command "$node" rabbitmqctl; done
}

# write_node_command NODE TOOL
write_node_command() {
  local path
  path=$STATE/$2$(node_suffix "$1")
  {
    echo '#!/bin/bash'
    echo "# $2 for a private node of $STATE"
    (
      broker_environment "$1"
      for name in HOME RABBITMQ_NODENAME RABBITMQ_CONF_ENV_FILE ERL_EPMD_PORT ERL_EPMD_ADDRESS ERL_CRASH_DUMP; do
        printf 'export %s=%q\n' "$name" "${!name}"
      done
    )
    printf 'exec'
    printf ' %q' "${broker_system[@]}" "$RABBITMQ_BIN/$2"
    echo ' "$@"'
  } >"$path"
  chmod 755 "$path"
}
