"""Access to a stack started by deploy/local/up: addresses, services, bus and phones.

Used by system tests and benches. It uses public interfaces only.
"""

import contextlib
import json
import os
import pathlib
import shlex
import subprocess

import pika

import broker_cluster
import http_requests
import monitoring
from waiting import eventually  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOCAL = ROOT / "deploy" / "local"
SERVICES = ["rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback", "events-api",
            "webhook-sender", "provider-simulator"]


class Stack:
    """A stack with its own folder and ports."""

    def __init__(self, state: pathlib.Path, port_base: int, build: str = "debug"):
        self.state = pathlib.Path(state)
        self.port_base = port_base
        self.build = build
        self.environment = dict(
            os.environ, LOCAL_STATE=str(self.state), LOCAL_PORT_BASE=str(port_base), LOCAL_BUILD=build, LOCAL_CONSOLE="no",
        )

    def up(self, *options: str, timeout: float = 900) -> str:
        """Starts the stack in the background and returns the output of deploy/local/up."""
        done = subprocess.run(
            [LOCAL / "up", "--detach", *options],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
        )
        if done.returncode != 0:
            raise RuntimeError(f"deploy/local/up failed:\n{done.stderr[-4000:]}")
        return done.stderr

    def down(self, *options: str) -> None:
        subprocess.run(
            [LOCAL / "down", *options], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=180
        )

    def service(self, verb: str, name: str) -> str:
        """Runs deploy/local/service VERB NAME."""
        done = subprocess.run(
            [LOCAL / "service", verb, name],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
        )
        if done.returncode != 0:
            raise RuntimeError(f"service {verb} {name}: {done.stderr[-2000:]}")
        return done.stdout.strip()

    def restart_all(self, *names: str) -> None:
        """Stops services, starts them, and waits until they are ready."""
        for verb in ("stop", "start", "ready"):
            for name in names:
                self.service(verb, name)

    @property
    def env(self) -> dict[str, str]:
        """The variables of .local/env."""
        lines = (self.state / "env").read_text().splitlines()
        pairs = (shlex.split(line)[1].split("=", 1) for line in lines if line.startswith("export "))
        return dict(pairs)

    def admin_port(self, service: str) -> int:
        """The port of a service's /metrics and /health."""
        return int((self.state / "run" / "port-base").read_text()) + monitoring.ADMIN_PORTS[service]

    # HTTP

    def http(self, method: str, url: str, body=None, headers: dict[str, str] | None = None, **options):
        """Returns (status, parsed JSON or text), as ``http_requests.request`` does."""
        return http_requests.request(method, url, body, headers, **options)

    def requests(self, provider: str) -> list[dict]:
        """The simulator's request log."""
        status, answer = self.http("GET", f"{self.env['SIMULATOR_URL']}/{provider}/requests")
        assert status == 200, answer
        return answer["requests"]

    def forget_requests(self) -> None:
        self.http("DELETE", f"{self.env['SIMULATOR_URL']}/requests")

    def bearer(self, app: str, user: str, *options: str) -> str:
        done = subprocess.run(
            [self.product("pushctl"), "token", "mint", "--app", app, "--user", user, "--apps", self.env["HELIOGRAPH_APPS"],
             *options],
            capture_output=True, text=True, timeout=30, check=True,
        )
        return done.stdout.strip()

    def pushctl(self, *arguments: str) -> tuple[int, str]:
        """Runs pushctl as the administrator, with the addresses of all nodes. Returns its exit code and output."""
        environment = {**os.environ, **self.env, "AMQP_URL": self.amqp_url}
        done = subprocess.run(
            [self.product("pushctl"), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def product(self, name: str) -> pathlib.Path:
        return ROOT / ".build" / self.build / name

    def register(self, app: str, user: str, token: str, platform: str = "ios", environment: str = "production",
                 verb: str = "register", bearer: str | None = None):
        return self.http(
            "POST", f"{self.env['REGISTRY_URL']}/api/notifications/push/{verb}",
            {"token": token, "platform": platform, "environment": environment},
            {"Authorization": f"Bearer {bearer or self.bearer(app, user)}"},
        )

    # The bus

    @property
    def amqp_url(self) -> str:
        """The administrator's URL with the addresses of all nodes, as services get it."""
        urls = self.env["AMQP_NODE_URLS"].split()
        hosts = ",".join(url.rpartition("@")[2].partition("/")[0] for url in urls)
        return f"{urls[0].rpartition('@')[0]}@{hosts}/heliograph"

    @contextlib.contextmanager
    def channel(self):
        """Yields a pika channel with publisher confirms, on the first node that accepts a connection."""
        connection = pika.BlockingConnection([pika.URLParameters(url) for url in self.env["AMQP_NODE_URLS"].split()])
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel
        finally:
            if connection.is_open:
                connection.close()

    def publish(self, routing_key: str, body: bytes, **properties) -> None:
        with self.channel() as channel:
            channel.basic_publish("events", routing_key, body, pika.BasicProperties(**properties), mandatory=True)

    def is_answered(self, event: str) -> bool:
        """Whether rules stored an outcome for every notification of an event."""
        query = (
            "SELECT count(*) > 0 AND count(*) = count(o.notification) FROM rules.event e "
            "JOIN rules.decision d ON d.event = e.key LEFT JOIN rules.outcome o USING (notification) "
            "WHERE e.id = :'event'"
        )
        return sql(self, query, event=event) == "t"

    @property
    def broker_nodes(self) -> list[broker_cluster.BrokerNode]:
        return broker_cluster.broker_nodes(self)

    def queue_leader(self, queue: str) -> broker_cluster.BrokerNode | None:
        """The node of a quorum queue's leader; None during an election."""
        return broker_cluster.queue_leader(self, queue)

    def depth(self, queue: str) -> int:
        with self.channel() as channel:
            return channel.queue_declare(queue, passive=True).method.message_count

    def take(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """Empties a queue and returns its messages."""
        taken = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return taken
                taken.append((properties, body))


def sql(stack, statement: str, timeout: float = 20, **values: str) -> str:
    """The rows of a statement of the database's administrator; `:'name'` in it is a value."""
    options = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
    done = subprocess.run(
        ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *options, stack.env["DATABASE_URL"]], input=statement,
        capture_output=True, text=True, timeout=timeout, check=True)
    return done.stdout.strip()


def cloud_event(type: str, data: dict, id: str, source: str = "/system-test") -> bytes:
    """A structured CloudEvent."""
    return json.dumps({"specversion": "1.0", "id": id, "source": source, "type": type, "data": data}).encode()
