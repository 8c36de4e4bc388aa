# A private RabbitMQ node with its own data, ports, epmd and cookie. Works as root and as an ordinary user. Sourced.

RABBITMQ_BIN=/usr/lib/rabbitmq/bin

broker_environment() {
  local home=$STATE/rabbitmq
  export HOME=$home # Erlang keeps its cookie here
  export RABBITMQ_NODENAME=heliograph-$PORT_BASE@localhost
  export RABBITMQ_CONF_ENV_FILE=$home/empty.conf # never the system's
  export RABBITMQ_CONFIG_FILE=$home/rabbitmq
  export RABBITMQ_ENABLED_PLUGINS_FILE=$home/enabled_plugins
  export RABBITMQ_MNESIA_BASE=$home/data RABBITMQ_LOG_BASE=$home/log RABBITMQ_PID_FILE=$home/pid
  export RABBITMQ_DIST_PORT=$DIST_PORT ERL_EPMD_PORT=$EPMD_PORT ERL_EPMD_ADDRESS=127.0.0.1
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
  export ERL_CRASH_DUMP=$home/log/erl_crash.dump
  unset RABBITMQ_HOME
}

# write_broker_configuration [DEFINITIONS-FILE]
write_broker_configuration() {
  local home=$STATE/rabbitmq
  mkdir -p "$home/data" "$home/log"
  : >"$home/empty.conf"
  echo '[].' >"$home/enabled_plugins"
  {
    echo "listeners.tcp.1 = 127.0.0.1:$AMQP_PORT"
    echo "default_user = heliograph"
    echo "default_pass = $(secret broker-administrator)"
    echo "default_vhost = heliograph"
    # The same log settings and message size limit as in production.
    grep -E '^(raft\.|max_message_size)' "$ROOT/deploy/rabbitmq/rabbitmq.conf"
    echo "disk_free_limit.absolute = 200MB"
    echo "log.file.level = warning"
    [ -z "${1:-}" ] || echo "load_definitions = $1"
  } >"$home/rabbitmq.conf"
  chmod 600 "$home/rabbitmq.conf"
}

broker_answers() { port_is_open "$AMQP_PORT" && is_running broker; }

session_is_over() { ! pgrep -s "$1" >/dev/null; }

broker_started_or_died() { port_is_open "$AMQP_PORT" || ! is_running broker-launcher; }

# start_broker: returns when it accepts connections.
start_broker() {
  is_running broker && return 0
  need_free_port "$AMQP_PORT" "the private RabbitMQ node"
  need_free_port "$DIST_PORT" "the private RabbitMQ node's Erlang distribution"
  rm -f "$STATE/rabbitmq/pid"
  (broker_environment && start_process broker-launcher "$RABBITMQ_BIN/rabbitmq-server")
  if ! wait_until 60 "RabbitMQ" broker_started_or_died || ! port_is_open "$AMQP_PORT"; then
    tail -n 20 "$STATE/log/broker-launcher.log" >&2
    fail "RabbitMQ did not start" "its log is in $STATE/rabbitmq/log"
  fi
  wait_until 10 "RabbitMQ's pid" test -s "$STATE/rabbitmq/pid"
  record_pid broker "$(cat "$STATE/rabbitmq/pid")"
}

# stop_broker: stops with TERM, including the private epmd.
stop_broker() {
  local launcher
  stop_process broker 60
  # A node that was interrupted during its start is only known by its launcher, which leads its own session.
  if launcher=$(pid_of broker-launcher); then
    kill -TERM -- "-$launcher" 2>/dev/null
    wait_until 20 "the broker's launcher to stop" session_is_over "$launcher" || kill -KILL -- "-$launcher" 2>/dev/null
  fi
  rm -f "$STATE/run/broker-launcher.pid"
  [ -z "$(command -v epmd)" ] || wait_until 20 "epmd to stop" epmd_is_gone
}

# Repeats the request: epmd refuses to stop until it notices that its node is gone.
epmd_is_gone() {
  port_is_open "$EPMD_PORT" || return 0
  ERL_EPMD_PORT=$EPMD_PORT epmd -kill
  ! port_is_open "$EPMD_PORT"
}

broker_url() { echo "amqp://$1:$2@127.0.0.1:$AMQP_PORT/${3:-heliograph}"; }

# write_rabbitmqctl: writes a rabbitmqctl command for the private node.
write_rabbitmqctl() {
  {
    echo '#!/bin/bash'
    echo "# rabbitmqctl for the private node of $STATE"
    (
      broker_environment
      for name in HOME RABBITMQ_NODENAME RABBITMQ_CONF_ENV_FILE ERL_EPMD_PORT ERL_EPMD_ADDRESS; do
        printf 'export %s=%q\n' "$name" "${!name}"
      done
    )
    echo "exec $RABBITMQ_BIN/rabbitmqctl \"\$@\""
  } >"$STATE/rabbitmqctl"
  chmod 755 "$STATE/rabbitmqctl"
}
