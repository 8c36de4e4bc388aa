"""A stack for fault injection: its processes, servers, connections and health."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from chaos_signals import SERVICES
from local_stack import LOCAL, ROOT, Stack, eventually

BROKER_USERS = SERVICES
DATABASE_USERS = ["rules", "token-registry", "feedback"]
# The providers' ports by service, counted from the stack's first port.
PROVIDER_PORTS = {"apns-sender": {"apns": 4, "apns-sandbox": 5}, "fcm-sender": {"fcm": 6}}
# The first port of the proxies, counted from the stack's first port; the control port is before it.
PROXY_PORTS = 32
BROKER_PORTS = [0, 16, 18]
DATABASE_PORTS = [3, 20]
DATABASE_DISK = "6g"
# The retry level for a provider that is unavailable.
LATE_RETRIES = {"retry.2m": 120, "retry.15m": 900}


class ChaosStack(Stack):
    """A stack whose services reach broker, database and providers through a proxy."""

    def __init__(
        self, state: pathlib.Path, port_base: int, build: str = "debug", nodes: int = 1, standby: bool = False
    ):
        super().__init__(state, port_base, build)
        self.port_base, self.nodes, self.standby = port_base, nodes, standby
        if nodes > 1:
            self.environment["LOCAL_NODES"] = str(nodes)
        if standby:
            self.environment["LOCAL_STANDBY"] = "yes"
        self._proxy: subprocess.Popen | None = None
        self._queues: list[str] = []
        # Until when each of LATE_RETRIES may have messages.
        self.retries_until = dict.fromkeys(LATE_RETRIES, 0.0)
        # Whether the standby was promoted.
        self.promoted = False

    # Start and stop

    def up(self, *options: str, timeout: float = 900) -> str:
        self.state.mkdir(parents=True, exist_ok=True)
        self._mount_database_disk()
        self._start_proxy()
        output = super().up(*options, timeout=timeout)
        self._queues = [row["name"] for row in self.queues("name") if not row["name"].endswith(".dead")]
        return output

    def down(self, *options: str) -> None:
        super().down(*[option for option in options if option != "--erase"])
        if self._proxy is not None:
            self._proxy.terminate()
            self._proxy.wait(10)
            self._proxy = None
        if os.path.ismount(self.database_disk):
            subprocess.run(["umount", self.database_disk], check=True, timeout=30)
        super().down(*options)

    @property
    def database_disk(self) -> pathlib.Path:
        """The folder of the database. As root, a file system of its own, which a fault can fill."""
        return self.state / "postgres"

    def _mount_database_disk(self) -> None:
        self.database_disk.mkdir(exist_ok=True)
        if os.geteuid() == 0 and not os.path.ismount(self.database_disk):
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={DATABASE_DISK}", "heliograph-chaos", self.database_disk],
                check=True, timeout=30)

    def resize_database_disk(self, size: int | None) -> None:
        """Sets the size of the database's file system in bytes; None restores it."""
        option = f"remount,size={DATABASE_DISK if size is None else size}"
        subprocess.run(["mount", "-o", option, self.database_disk], check=True, timeout=30)

    # Proxies

    def _start_proxy(self) -> None:
        routes, lines, port = {}, [], self.port_base + PROXY_PORTS
        for name, service, to in self._proxied():
            routes[name] = {"listen": port, "to": to}
            lines.append(f"{service} {to} {port}\n")
            port += 1
        path = self.state / "proxy-routes.json"
        path.write_text(json.dumps(routes))
        (self.state / "proxies").write_text("".join(lines))
        self.proxies = list(routes)
        (self.state / "log").mkdir(exist_ok=True, mode=0o700)
        with (self.state / "log" / "proxy.log").open("ab") as log:
            self._proxy = subprocess.Popen(
                [sys.executable, LOCAL / "lib" / "chaos_proxy.py", path, str(self.port_base + PROXY_PORTS - 1)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        eventually(lambda: self._answers(self.port_base + PROXY_PORTS - 1), 20, "the proxy")

    def _proxied(self):
        """Name, service and port of every proxied connection. A name is `SERVICE SERVER`."""
        for service in BROKER_USERS:
            for node in range(self.nodes):
                yield f"{service} broker{node + 1 if node else ''}", service, self.port_base + BROKER_PORTS[node]
        for service in DATABASE_USERS:
            for number, name in enumerate(["database", "standby"][: 2 if self.standby else 1]):
                yield f"{service} {name}", service, self.port_base + DATABASE_PORTS[number]
        for service, ports in PROVIDER_PORTS.items():
            for provider, offset in ports.items():
                yield f"{service} {provider}", service, self.port_base + offset

    @staticmethod
    def _answers(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def proxy(self, order: dict) -> dict:
        """Sends an order to the proxy; chaos_proxy.py lists them."""
        with socket.create_connection(("127.0.0.1", self.port_base + PROXY_PORTS - 1), timeout=10) as control:
            control.sendall(json.dumps(order).encode() + b"\n")
            with control.makefile() as answers:
                answer = json.loads(answers.readline())
        if "error" in answer:
            raise RuntimeError(f"the proxy rejected {order}: {answer['error']}")
        return answer

    def routes_to(self, *servers: str) -> list[str]:
        """The proxied connections to `broker`, `database`, `standby`, `apns`, `apns-sandbox` or `fcm`."""
        return [name for name in self.proxies if re.sub(r"\d$", "", name.split()[1]) in servers]

    # Processes

    def pid(self, name: str) -> int | None:
        try:
            return int(self.service("pid", name))
        except RuntimeError:
            return None

    def start(self, name: str) -> None:
        """Starts a process unless it runs. Waits for its turn: one script at a time may start processes."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.service("start", name)
                return
            except RuntimeError as refusal:
                if "at work" not in str(refusal) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self, name: str) -> None:
        self.service("stop", name)

    def kill(self, name: str) -> None:
        self.service("kill", name)

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name)

    def signal(self, name: str, number: signal.Signals) -> list[int]:
        """Sends a signal to a process, and to its children if it is the database. Returns the pids."""
        pid = self.pid(name)
        pids = [] if pid is None else [pid] + (children(pid) if name.startswith("database") else [])
        for one in pids:
            try:
                os.kill(one, number)
            except ProcessLookupError:
                pass  # A child of the database ended meanwhile.
        return pids

    @staticmethod
    def await_end(pid: int, what: str) -> None:
        eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 60, f"the end of {what}")

    def log(self, name: str) -> pathlib.Path:
        return self.state / "log" / f"{name}.log"

    def secret(self, name: str) -> str:
        return (self.state / "secrets" / name).read_text().strip()

    def replace_secret(self, name: str, text: str) -> None:
        path = self.state / "secrets" / name
        fresh = path.with_name(f"{name}.new")
        fresh.touch(mode=0o600)
        fresh.write_text(text + "\n")
        fresh.replace(path)

    # Broker and database

    def rabbitmqctl(self, *arguments: str, timeout: float = 60, check: bool = True) -> str:
        """Runs rabbitmqctl on the first node that runs."""
        node = self.broker_nodes[0] if self.nodes == 1 else next(one for one in self.broker_nodes if one.is_running)
        done = subprocess.run(
            [self.state / f"rabbitmqctl{node.process.removeprefix('broker')}", "-q", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"rabbitmqctl {arguments}: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def listed(self, *arguments: str) -> list[dict]:
        """The rows of a listing command of rabbitmqctl."""
        return json.loads(self.rabbitmqctl(*arguments, "--formatter", "json"))

    def queues(self, *columns: str) -> list[dict]:
        return self.listed("list_queues", "-p", "heliograph", *columns)

    def close_broker_connections(self, user: str | None = None) -> None:
        """Closes all connections of services, or of one service."""
        if user is None:
            self.rabbitmqctl("close_all_connections", "--vhost", "heliograph", "chaos")
        else:
            self.rabbitmqctl("close_all_user_connections", user, "chaos")

    def pushctl(self, *arguments: str, url: str | None = None) -> str:
        environment = dict(os.environ)
        environment["AMQP_URL_FILE"] = url or str(self.state / "secrets" / "amqp-url-topology")
        done = subprocess.run(
            [self.product("pushctl"), *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"pushctl {arguments}: {done.stderr[-2000:]}")
        return done.stdout

    def apply_topology(self) -> None:
        self.pushctl("topology", "apply", "--apps", str(self.state / "apps.yaml"))

    def sql(self, statement: str, database: str = "heliograph", timeout: float = 30) -> str:
        """Runs a statement as the database's administrator, past the proxy and past read-only settings."""
        url = re.sub(r"/heliograph(\?|$)", rf"/{database}\1", self.env["DATABASE_URL"])
        done = subprocess.run(
            ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url], input=statement, capture_output=True, text=True,
            timeout=timeout, env=dict(os.environ, PGOPTIONS="-c default_transaction_read_only=off"))
        if done.returncode != 0:
            raise RuntimeError(f"psql: {done.stderr[-1000:]}")
        return done.stdout.strip()

    # Health

    def readiness(self, service: str) -> dict[str, str] | None:
        """The conditions that do not hold, with their reasons; None if the service does not answer."""
        try:
            _, report = self.http("GET", f"http://127.0.0.1:{self.admin_port(service)}/health/ready", timeout=2)
        except (OSError, http.client.HTTPException):
            return None
        if not isinstance(report, dict):
            return {"report": str(report)[:200]}
        return {one["name"]: one.get("reason", "") for one in report["conditions"] if not one["holds"]}

    def metrics(self, service: str) -> dict[str, float] | None:
        """The value of each metric series; None if the service does not answer."""
        try:
            status, text = self.http("GET", f"http://127.0.0.1:{self.admin_port(service)}/metrics", timeout=2)
        except (OSError, http.client.HTTPException):
            return None
        if status != 200 or not isinstance(text, str):
            return None
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {series: float(value) for series, value in lines}

    def unrecovered(self, drained: bool = True) -> list[str]:
        """What is not as before a fault: services that are not ready, routes that pause and, without traffic
        (`drained`), messages that wait.
        """
        missing = []
        for service in SERVICES:
            conditions = self.readiness(service)
            # The database's settings are those of a development machine; a paused route is reported below.
            shown = {name: reason for name, reason in (conditions or {}).items() if name != "database-durability"}
            if conditions is None:
                missing.append(f"{service} does not answer")
            missing += [f"{service}: {name}: {reason}" for name, reason in shown.items()]
            for series, value in (self.metrics(service) or {}).items():
                if drained and series.startswith("heliograph_messages_in_flight") and value > 0:
                    missing.append(f"{service}: {value:g} messages in flight: {series}")
                if series.startswith("heliograph_route_open") and value < 1:
                    missing.append(f"{service}: {series} is 0")
        if not drained:
            return missing
        try:
            queues = [one for one in self._queues if time.monotonic() > self.retries_until.get(one, 0)]
            missing += [f"{count} messages in {queue}" for queue, count in self.depths(queues).items()]
        except Exception as error:  # pika has no common base class for its errors and those of sockets.
            missing.append(f"queues cannot be read: {error!r}")
        return missing

    def depths(self, queues: list[str]) -> dict[str, int]:
        """The ready messages of each queue that has any. A stream's messages do not count."""
        found = {}
        with self.channel() as channel:
            for queue in queues:
                if queue != "senders.revocations":
                    count = channel.queue_declare(queue, passive=True).method.message_count
                    if count:
                        found[queue] = count
        return found

    def await_recovered(self, within: float, drained: bool = True) -> float:
        """Waits until nothing is unrecovered twice in a row. Returns the seconds. Collects what was seen last, with its
        time, in `awaited`.
        """
        begun, clear = time.monotonic(), 0
        self.awaited: dict[str, float] = {}
        while clear < 2:
            missing = self.unrecovered(drained)
            self.awaited |= {one: round(time.monotonic() - begun, 1) for one in missing}
            clear = 0 if missing else clear + 1
            if time.monotonic() - begun > within and missing:
                raise AssertionError(f"not recovered after {within:g} s: {'; '.join(missing[:8])}")
            time.sleep(0.5)
        return time.monotonic() - begun


def children(pid: int) -> list[int]:
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.glob("*/children") for child in task.read_text().split()]

