"""Simulated users with one device each, their notifications and the outcomes.

Registrations and notifications are published on the bus, outcomes are consumed from a separate queue, and requests are
read from the simulator.
"""

import collections
import concurrent.futures
import json
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field

import pika
from local_stack import eventually

APPS = {"apns": ["family-portal", "hide-and-seek"], "fcm": ["family-portal"]}


@dataclass
class Outcomes:
    """Collects every outcome by notification."""

    url: str
    by_notification: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))

    def __enter__(self):
        self.connection = pika.BlockingConnection(pika.URLParameters(self.url))
        self.channel = self.connection.channel()
        queue = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.queue_bind(queue, "outcomes", "#")
        self.channel.basic_consume(queue, self._take, auto_ack=True)
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(10)
        self.connection.close()

    def _listen(self):
        while not self.ends.is_set():
            self.connection.process_data_events(time_limit=0.2)

    def _take(self, _channel, method, _properties, body):
        for notification, disposition in dispositions_of(json.loads(body)):
            self.by_notification[notification.lower()].append(disposition)

    def of(self, notifications) -> dict[str, list[str]]:
        return {one: self.by_notification[one] for one in notifications if one in self.by_notification}


def dispositions_of(message: dict) -> list[tuple[str, str]]:
    """The notification and disposition of each outcome in a message."""
    listed = [(outcome["notification"], outcome["answer"]["disposition"]) for outcome in message.get("outcomes", [])]
    table = message.get("accepted", {"devices": [], "notifications": []})
    notifications = table["notifications"] * (len(table["devices"]) if len(table["notifications"]) == 1 else 1)
    return listed + [(notification, "accepted") for notification in notifications]


class SimulatedUsers:
    """Users of one provider with one device each, distributed over the apps."""

    def __init__(self, stack, provider: str, size: int):
        self.stack, self.provider, self.size = stack, provider, size
        self.name = uuid.uuid4().hex[:8]
        self.apps = APPS[provider]
        self.notifications: set[str] = set()

    def app(self, number: int) -> str:
        return self.apps[number % len(self.apps)]

    def user(self, number: int) -> str:
        return f"user-{self.provider}-{self.name}-{number}"

    def token(self, number: int) -> str:
        return f"{self.name}{number:056x}" if self.provider == "apns" else f"user-{self.name}-{number}"

    def register(self) -> None:
        def commands():
            for number in range(self.size):
                command = {"verb": "register", "user": self.user(number), "provider": self.provider,
                           "environment": "production", "token": self.token(number)}
                body = {"type": "heliograph.device-command", "version": 1, "trace": trace(), "app": self.app(number),
                        "command": command}
                yield "devices", "command.register", body

        publish(self.stack, commands())
        eventually(lambda: self.registered() == self.size, 60 + self.size / 100, "every registration")

    def registered(self) -> int:
        return int(self.query("SELECT count(*)"))

    def inactive(self) -> dict[str, str]:
        """The inactive tokens with their reasons."""
        # The column `token` is encrypted, so the token is derived from the user's number.
        lines = self.query("SELECT user_id || ' ' || state_reason", "AND state <> 'active'").splitlines()
        return {self.token(int(user.rsplit("-", 1)[1])): reason for user, reason in (line.split(" ", 1) for line in lines)}

    def query(self, select: str, condition: str = "") -> str:
        done = subprocess.run(
            ["psql", "-XAtq", self.stack.env["DATABASE_URL"], "-c",
             f"{select} FROM registry.registration WHERE user_id LIKE 'user-{self.provider}-{self.name}-%' {condition}"],
            capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def notify(self, lifetime: float, numbers=None, together: int = 1) -> set[str]:
        """Publishes one notification for each user, `together` users per message, in both lanes."""
        numbers = list(range(self.size) if numbers is None else numbers)
        expires = int((time.time() + lifetime) * 1000)
        sent: set[str] = set()

        def messages():
            by_app = collections.defaultdict(list)
            for number in numbers:
                by_app[self.app(number)].append(number)
            for app, members in by_app.items():
                for place in range(0, len(members), together):
                    recipients = []
                    for number in members[place : place + together]:
                        notification = str(uuid.uuid4())
                        sent.add(notification)
                        recipients.append({"user": self.user(number), "notification": notification, "badge": 1})
                    lane = "bulk" if (place // together) % 2 else "interactive"
                    body = {"type": "heliograph.notification", "version": 1, "trace": trace(), "app": app,
                            "rule": "group", "lane": lane, "expiresAt": expires, "recipients": recipients,
                            "content": {"title": "Hello", "body": "Are you there?", "silent": False}}
                    yield "notifications", f"{lane}.{app}", body

        publish(self.stack, messages())
        self.notifications |= sent
        return sent


def trace() -> dict:
    return {"id": str(uuid.uuid4()), "correlation": "group", "causation": "group"}


def publish(stack, messages, at_once: int = 8) -> None:
    """Publishes until the broker confirms every message, in any order."""
    messages, lock = iter(messages), threading.Lock()

    def work(_):
        with stack.channel() as channel:
            while True:
                with lock:
                    message = next(messages, None)
                if message is None:
                    return
                exchange, key, body = message
                channel.basic_publish(
                    exchange, key, json.dumps(body).encode(),
                    pika.BasicProperties(content_type="application/json", delivery_mode=2), mandatory=True)

    with concurrent.futures.ThreadPoolExecutor(at_once) as workers:
        list(workers.map(work, range(at_once)))


class Simulator:
    """The control port of a stack's simulator."""

    def __init__(self, stack):
        self.stack, self.url = stack, stack.env["SIMULATOR_URL"]

    def ask(self, method: str, path: str, body=None):
        status, answer = self.stack.http(method, self.url + path, body)
        assert status in (200, 201, 204), f"{method} {path}: {status} {answer}"
        return answer

    def script_faults(
        self, provider: str, share: float, connection_share: float, lane_share: float, seed: int
    ) -> list[dict]:
        """Scripts every fault. Faults that affect more than one request have their own share."""
        faults = self.ask("GET", f"/faults?provider={provider}&share={share}")
        faults = faults if isinstance(faults, list) else faults["outcomes"]
        for fault in faults:
            if stops_lane(fault):
                fault["share"] = lane_share
            elif CONNECTION & fault.keys():
                fault["share"] = connection_share
        self.ask("POST", f"/outcomes?seed={seed}", faults)
        return faults

    def script_handshakes(self, share: float) -> int:
        """Breaks this share of the connections with each handshake fault in turn."""
        every = max(1, round(1 / (share * len(HANDSHAKES))))
        turns = [{"fault": fault, "count": 1, "every": every} for _ in range(100) for fault in HANDSHAKES]
        self.ask("POST", "/handshakes", [{"port": port, **turn} for port in PORTS for turn in turns])
        return len(PORTS) * len(HANDSHAKES)

    def clear_faults(self) -> None:
        for path in ("/outcomes", "/disturbances", "/handshakes"):
            self.ask("DELETE", path)

    def summary(self) -> dict:
        return self.ask("GET", "/summary")


# Faults before HTTP/2 starts, and the ports of the users' pushes.
HANDSHAKES = ["refuse", "ignore", "expired", "wrong_name", "unknown_authority", "wrong_protocol"]
PORTS = ["apns", "fcm"]
# Faults that affect every request on the connection.
CONNECTION = {"drop", "close", "stall", "goaway", "max_streams"}
# Reasons that concern the sender's credential: they pause the route until an operator fixes it.
CREDENTIAL = {
    "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadPath",
    "BadTopic", "DuplicateHeaders", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MethodNotAllowed", "MissingProviderToken",
    "MissingTopic", "TooManyProviderTokenUpdates", "TopicDisallowed", "UnrelatedKeyIdInToken", "SENDER_ID_MISMATCH",
    "THIRD_PARTY_AUTH_ERROR",
}
BARE = {"401 bare", "403 bare", "404 bare"}


def stops_lane(fault: dict) -> bool:
    """Whether a fault pauses its route."""
    return bool(CREDENTIAL & {fault.get("reason"), fault.get("error_code")} or fault.get("name") in BARE)


class Evidence:
    """The faults of each token, read from the simulator's log before it drops them."""

    def __init__(self, simulator: Simulator, providers):
        self.simulator = simulator
        self.last = {provider: 0 for provider in providers}
        self.faults: dict[str, set[str]] = collections.defaultdict(set)

    def collect(self) -> None:
        for provider in self.last:
            while True:
                page = self.simulator.ask("GET", f"/{provider}/requests?since={self.last[provider]}&limit=5000")
                for request in page["requests"]:
                    if "fault" in request and request.get("token"):
                        self.faults[request["token"]].add(request["fault"])
                if not page["requests"]:
                    break
                self.last[provider] = page["requests"][-1]["sequence"]


def lanes_open(stack) -> dict[str, float]:
    """Each sender's routes by metric series: 1 if open, 0 if paused."""
    lanes = {}
    for service in ("apns-sender", "fcm-sender"):
        for line in metrics(stack, service).splitlines():
            if line.startswith("heliograph_route_open{"):
                name, value = line.rsplit(" ", 1)
                lanes[name] = float(value)
    return lanes


def metrics(stack, service: str) -> str:
    status, text = stack.http("GET", f"http://127.0.0.1:{stack.admin_port(service)}/metrics")
    assert status == 200, text
    return text if isinstance(text, str) else json.dumps(text)
