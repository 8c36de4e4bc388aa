"""Faults of the network between services and servers, made by chaos_proxy.py."""

import time

from chaos_fault import Fault
from chaos_service_faults import unacknowledged_pushes

SERVERS = {"broker": ("broker",), "database": ("database", "standby"), "providers": ("apns", "apns-sandbox", "fcm")}
BROKER_LOST = "any log: Broker connection failed; reconnecting"
DATABASE_LOST = "any not-ready database: unreachable"
PROVIDER_LOST = 'apns-sender|fcm-sender metric heliograph_push_connects_total{result="failed"} rises'
PROVIDER_RECONNECTED = 'apns-sender|fcm-sender metric heliograph_push_connects_total{result="ready"} rises'


class NetworkFault(Fault):
    """A disturbance of all connections to one kind of server."""

    kind: str
    disturbance: dict = {}
    # Whether current connections are reset at the begin.
    resets = False

    def __init__(self, server: str, *signals: str, gate: bool = False, hold: float | None = None):
        self.server, self.signals, self.gate = server, signals, gate
        self.name = f"network-{server}-{self.kind}"
        if hold is not None:
            self.hold = hold

    def routes(self, stack) -> list[str]:
        return stack.routes_to(*SERVERS[self.server])

    def begin(self, stack, random):
        self.bound(stack, times=1)
        stack.proxy({"disturb": self.routes(stack), "with": self.disturbance})
        if self.resets:
            stack.proxy({"reset": self.routes(stack)})
        return {"server": self.server, **self.disturbance}

    def bound(self, stack, times: int) -> None:
        """Answers of providers can be lost `times` times for each unacknowledged push. Senders remember answers that
        arrived, so a lost broker connection repeats no push.
        """
        self.extra_pushes = times * unacknowledged_pushes(stack) if self.server == "providers" else 0

    def end(self, stack):
        stack.proxy({"disturb": self.routes(stack), "with": {}})


class Slow(NetworkFault):
    """200 ms ± 100 ms of delay, and two segments of a hundred are sent again."""

    kind, numbers, hold = "slow", (8,), 20
    disturbance = {"delay": 0.2, "jitter": 0.1, "stall_share": 0.02, "stall": 0.4}


class Throttled(NetworkFault):
    """Thirty kilobytes a second for each connection."""

    kind, numbers, hold = "throttled", (8, 21), 20
    disturbance = {"rate": 30_000}


class BlackHole(NetworkFault):
    """Nothing arrives in either direction, and no connection is closed."""

    kind, numbers, hold = "black-hole", (5,), 20
    disturbance = {"hold": "both"}


class Deaf(NetworkFault):
    """Services send, and nothing arrives from the server."""

    kind, numbers, hold = "answers-lost", (6,), 20
    disturbance = {"hold": "from"}


class Mute(NetworkFault):
    """The server sends, and nothing arrives from the services."""

    kind, numbers, hold = "requests-lost", (6,), 20
    disturbance = {"hold": "to"}


class Refused(NetworkFault):
    """Every connection is reset, also new ones."""

    kind, numbers, hold, resets = "refused", (7,), 10, True
    disturbance = {"refuse": True}


class CutShort(NetworkFault):
    """Each connection is reset after 20,000 bytes, in the middle of a frame."""

    kind, numbers, hold = "cut-short", (7,), 15
    disturbance = {"cut_after": 20_000}

    def bound(self, stack, times):
        # A push is tried eight times at most before it waits longer than the fault.
        super().bound(stack, 8)


class ResetStorm(NetworkFault):
    """All connections are reset ten times, each a second after the last."""

    kind, numbers, hold = "reset-storm", (7,), 3
    times = 10

    def begin(self, stack, random):
        self.bound(stack, self.times)
        for _ in range(self.times):
            stack.proxy({"reset": self.routes(stack)})
            time.sleep(1)
        return {"server": self.server, "times": self.times}


FAULTS: list[Fault] = [
    Slow("broker"), Slow("database"), Slow("providers"),
    Throttled("broker"), Throttled("database"), Throttled("providers"),
    BlackHole("broker", BROKER_LOST, hold=90), BlackHole("database", DATABASE_LOST),
    BlackHole("providers", PROVIDER_LOST, hold=45),
    Deaf("broker", BROKER_LOST, hold=75), Deaf("database", DATABASE_LOST),
    Deaf("providers", PROVIDER_LOST, hold=45),
    Mute("broker", hold=75), Mute("database", DATABASE_LOST), Mute("providers", PROVIDER_LOST, hold=45),
    Refused("broker", BROKER_LOST), Refused("database", DATABASE_LOST), Refused("providers", PROVIDER_LOST, gate=True),
    CutShort("broker", BROKER_LOST), CutShort("database"), CutShort("providers", PROVIDER_RECONNECTED),
    ResetStorm("broker", BROKER_LOST, gate=True), ResetStorm("database"), ResetStorm("providers", PROVIDER_RECONNECTED),
]
