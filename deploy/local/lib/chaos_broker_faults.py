"""Faults of the whole broker: ended, frozen, alarms, and closed connections."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from chaos_fault import CONNECTION_LOST, NOT_CONNECTED, Fault
from chaos_service_faults import unacknowledged_pushes
from chaos_signals import SERVICES


class Killed(Fault):
    """SIGKILL of the broker. Confirmed messages are on disk; senders remember the outcomes of redelivered pushes."""

    name = "broker-killed"
    numbers = (1,)
    gate = True
    hold = 3
    signals = (CONNECTION_LOST,)

    def begin(self, stack, random):
        stack.kill("broker")
        return {}

    def end(self, stack):
        stack.start("broker")


class Stopped(Killed):
    """A graceful stop, for longer than readiness tolerates."""

    name = "broker-stopped"
    numbers = (2,)
    gate = False
    hold = 45
    signals = (CONNECTION_LOST, NOT_CONNECTED)

    def begin(self, stack, random):
        stack.stop("broker")
        return {}


class AppStopped(Fault):
    """The broker's application is stopped; its virtual machine runs, and its port is closed."""

    name = "broker-app-stopped"
    numbers = (3,)
    hold = 40
    signals = (CONNECTION_LOST, NOT_CONNECTED)

    def begin(self, stack, random):
        stack.rabbitmqctl("stop_app")
        return {}

    def end(self, stack):
        stack.rabbitmqctl("start_app", timeout=120)


class Frozen(Fault):
    """SIGSTOP, for longer than two heartbeats and the tolerance of readiness."""

    name = "broker-frozen"
    numbers = (4,)
    hold = 90
    signals = (CONNECTION_LOST, NOT_CONNECTED)

    def begin(self, stack, random):
        return {"pids": stack.signal("broker", signal.SIGSTOP)}

    def end(self, stack):
        stack.signal("broker", signal.SIGCONT)


class FrozenBriefly(Frozen):
    name = "broker-frozen-briefly"
    gate = True
    hold = 10
    signals = ()


class ConnectionsClosed(Fault):
    """Every connection closed, ten times: deliveries are repeated, pushes are not."""

    name = "broker-connections-closed"
    numbers = (17,)
    gate = True
    hold = 3
    signals = ("any log: Connected to the broker",)

    def begin(self, stack, random):
        for _ in range(10):
            stack.close_broker_connections()
        return {"times": 10}

    def end(self, stack):
        pass


class MemoryAlarm(Fault):
    """The broker's memory alarm: it stops reading from publishers."""

    name = "broker-memory-alarm"
    numbers = (9,)
    gate = True
    hold = 15
    signals = ("any not-ready broker-out: the broker blocks publishers",)

    def begin(self, stack, random):
        stack.rabbitmqctl("set_vm_memory_high_watermark", "absolute", "1MB")
        return {}

    def end(self, stack):
        stack.rabbitmqctl("set_vm_memory_high_watermark", "0.4")


class DiskAlarm(Fault):
    """The broker's disk alarm."""

    name = "broker-disk-alarm"
    numbers = (10,)
    hold = 20
    signals = MemoryAlarm.signals

    def begin(self, stack, random):
        stack.rabbitmqctl("set_disk_free_limit", "9000GB")
        return {}

    def end(self, stack):
        stack.rabbitmqctl("set_disk_free_limit", "200MB")


class BothAlarms(Fault):
    """Both alarms, cleared in either order."""

    name = "broker-both-alarms"
    numbers = (9, 10)
    hold = 20
    signals = MemoryAlarm.signals

    def __init__(self):
        self.alarms = [MemoryAlarm(), DiskAlarm()]

    def begin(self, stack, random):
        for alarm in self.alarms:
            alarm.begin(stack, random)
        random.shuffle(self.alarms)
        return {"cleared": [alarm.name for alarm in self.alarms]}

    def end(self, stack):
        for alarm in self.alarms:
            alarm.end(stack)


class PermissionsCleared(Fault):
    """The permissions of one service are taken away. Its connections are closed, because channels cache permissions."""

    name = "broker-permissions-cleared"
    numbers = (28,)
    hold = 20
    signals = ("VICTIM log: ACCESS_REFUSED|access to .* refused|Cannot connect to the broker|NOT_ALLOWED|403|530",)

    def __init__(self):
        self.kept: dict | None = None

    def begin(self, stack, random):
        self.user = random.choice(SERVICES)
        rows = stack.listed("list_user_permissions", self.user)
        self.kept = next(row for row in rows if row["vhost"] == "heliograph")
        stack.rabbitmqctl("clear_permissions", "-p", "heliograph", self.user)
        stack.close_broker_connections(self.user)
        return {"service": self.user}

    def end(self, stack):
        if self.kept is None:
            return
        stack.rabbitmqctl(
            "set_permissions", "-p", "heliograph", self.user, self.kept["configure"], self.kept["write"],
            self.kept["read"])
        self.kept = None


class PasswordRotated(Fault):
    """The broker's password of one service changes first, and the file with it at the end."""

    name = "broker-password-rotated"
    numbers = (27,)
    hold = 15
    signals = ("VICTIM log: Cannot connect to the broker",)

    def __init__(self):
        self.user: str | None = None

    def begin(self, stack, random):
        self.user = random.choice(SERVICES)
        self.password = f"{random.getrandbits(192):048x}"
        stack.rabbitmqctl("change_password", self.user, self.password)
        stack.close_broker_connections(self.user)
        return {"service": self.user}

    def end(self, stack):
        if self.user is None:
            return
        url = stack.secret(f"amqp-url-{self.user}")
        former = stack.secret(f"broker-{self.user}")
        stack.replace_secret(f"broker-{self.user}", self.password)
        stack.replace_secret(f"amqp-url-{self.user}", url.replace(former, self.password))
        # A broker that starts sets the passwords of its definitions file.
        definitions = stack.pushctl(
            "topology", "definitions", "--apps", str(stack.state / "apps.yaml"), "--passwords",
            str(stack.state / "secrets"))
        (stack.state / "rabbitmq-definitions.json").write_text(definitions)
        self.user = None


class ConnectionLimit(Fault):
    """The broker allows one connection for a service that needs several."""

    name = "broker-connection-limit"
    numbers = (25,)
    hold = 20
    signals = ("VICTIM log: Cannot connect to the broker|connection limit|NOT_ALLOWED",)

    def __init__(self):
        self.user: str | None = None

    def begin(self, stack, random):
        self.user = random.choice(SERVICES)
        stack.rabbitmqctl("set_user_limits", self.user, '{"max-connections": 1}')
        stack.close_broker_connections(self.user)
        return {"service": self.user}

    def end(self, stack):
        if self.user is not None:
            stack.rabbitmqctl("clear_user_limits", self.user, "max-connections")
        self.user = None


class StoppedDuringOutage(Fault):
    """TERM of every service while the broker is frozen: unconfirmed work was never acknowledged."""

    name = "services-stopped-during-broker-outage"
    numbers = (53,)
    hold = 5
    signals = ("any down",)

    def begin(self, stack, random):
        self.extra_pushes = unacknowledged_pushes(stack)
        stack.signal("broker", signal.SIGSTOP)

        def stop(service: str) -> float:
            begun = time.monotonic()
            stack.stop(service)
            return round(time.monotonic() - begun, 1)

        # A stage waits for the broker until its shutdown deadline.
        with ThreadPoolExecutor(len(SERVICES)) as stops:
            return {"seconds": dict(zip(SERVICES, stops.map(stop, SERVICES), strict=True))}

    def end(self, stack):
        stack.signal("broker", signal.SIGCONT)
        for service in SERVICES:
            stack.start(service)


FAULTS: list[Fault] = [
    Killed(), Stopped(), AppStopped(), Frozen(), FrozenBriefly(), ConnectionsClosed(), MemoryAlarm(), DiskAlarm(),
    BothAlarms(), PermissionsCleared(), PasswordRotated(), ConnectionLimit(), StoppedDuringOutage(),
]
