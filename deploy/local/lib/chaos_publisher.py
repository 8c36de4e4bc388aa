"""Publishes the events of a chaos run at a steady rate, as an upstream does."""

import contextlib
import datetime
import itertools
import json
import random
import threading
import time

import pika
from chaos_history import History, Operation
from chaos_people import People

# Events by type, and how often each occurs.
WEIGHTS = {
    "note.plain": 50, "note.once": 10, "note.capped": 12, "note.waiting": 4, "note.quiet": 3, "note.scheduled": 8,
    "note.gathered": 8, "moving": 9,
}
# Shares of events that expire soon, and that are published twice.
EXPIRING, REPEATED = 0.1, 0.1
# Seconds until an expiring event is void.
LIFETIMES = (0.05, 2, 6)


class Publisher:
    """A thread with a connection of its own. `flows` pauses it."""

    def __init__(self, stack, people: People, history: History, seed: int, rate: float, flows: threading.Event):
        self.stack, self.people, self.history, self.rate, self.flows = stack, people, history, rate, flows
        self.random = random.Random(seed)
        self.numbers = itertools.count()
        self.name = f"{people.run}-{seed}"
        self.ends = threading.Event()
        self.texts: list[str] = []
        # Events of large groups and campaigns, to be published next.
        self.large: list[str] = []
        self.thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.ends.set()
        self.flows.set()
        self.thread.join(90)

    def call_crowds(self, apps) -> None:
        """Adds an event to a large group and one to every device of these apps."""
        self.large += [f"{app}/{type}" for app in apps for type in ("crowd.called", "campaign.started")]

    def _connection(self) -> pika.BlockingConnection:
        urls = self.stack.env["AMQP_NODE_URLS"].split()
        parameters = [pika.URLParameters(f"{url}?heartbeat=5&blocked_connection_timeout=15&socket_timeout=5"
                                         "&connection_attempts=1&stack_timeout=8") for url in urls]
        self.random.shuffle(parameters)
        return pika.BlockingConnection(parameters)

    def _work(self) -> None:
        again: list[tuple[Operation, bytes, str]] = []
        while not self.ends.is_set():
            connection = None
            try:
                connection = self._connection()
                channel = connection.channel()
                channel.confirm_delivery()
                self._publish_events(connection, channel, again)
            except Exception:  # pika has no common base class for its errors and those of sockets.
                time.sleep(0.3)
            finally:
                with contextlib.suppress(Exception):
                    if connection is not None and connection.is_open:
                        connection.close()

    def _publish_events(self, connection, channel, again: list) -> None:
        while not self.ends.is_set():
            while not self.flows.wait(1) and not self.ends.is_set():
                connection.process_data_events()
            if self.ends.is_set():
                return
            begun = time.monotonic()
            operation, body, key = again.pop() if again else self._event()
            self._attempt(channel, operation, body, key, again)
            pause = 1 / self.rate - (time.monotonic() - begun)
            if pause > 0:
                time.sleep(pause)

    def _attempt(self, channel, operation: Operation, body: bytes, key: str, again: list) -> None:
        operation.began, operation.monotonic = time.time(), time.monotonic()
        try:
            channel.basic_publish(
                "events", key, body,
                pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2), mandatory=True)
            operation.result = "ok"
        except (pika.exceptions.UnroutableError, pika.exceptions.NackError) as refusal:
            operation.result, operation.error = "failed", repr(refusal)[:80]
        except Exception as error:
            operation.result, operation.error = "unknown", repr(error)[:80]
            raise
        finally:
            operation.ended = time.time()
            self.history.add(operation)
            repeats = self.random.random() < (REPEATED if operation.result == "ok" else 0.5)
            if repeats and operation.type != "note.once":
                again.append((Operation(**vars(operation)), body, key))

    def _event(self) -> tuple[Operation, bytes, str]:
        if self.large:
            name, type = self.large.pop(0).split("/")
        else:
            name = self.random.choice(list(self.people.apps))
            type = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        app = self.people.apps[name]
        users, steady, type = self._recipients(app, type)
        event = f"{self.name}-{next(self.numbers)}"
        text = f"text-{event}-{self.random.getrandbits(48):012x}"
        self.texts.append(text)
        data, attributes, expires = {"who": users, "text": text}, {}, None
        if type == "campaign.started":
            del data["who"]
        if type == "note.scheduled":
            data["at"] = rfc3339(time.time() + self.random.uniform(0, 12))
        if type in ("note.plain", "note.once") and self.random.random() < EXPIRING:
            expires = time.time() + self.random.choice(LIFETIMES)
            attributes["expirytime"] = rfc3339(expires)
        body = json.dumps({
            "specversion": "1.0", "id": event, "source": "/chaos", "type": type, "data": data, **attributes}).encode()
        operation = Operation("published", "unknown", 0, 0, name, event, type, tuple(users), expires, steady)
        return operation, body, f"{name}.{type}"

    def _recipients(self, app, type: str) -> tuple[list[str], bool, str]:
        """The users, whether they keep their phones, and the event's type."""
        match type:
            case "moving":
                phone = self.random.choice([*app.moving, *app.choosing])
                return [self.random.choice(phone.users)], False, "note.plain"
            case "note.plain" | "note.once":
                several = self.random.sample(app.steady, self.random.choice([1, 1, 1, 3]))
                return [phone.users[0] for phone in several], True, type
            case "crowd.called":
                return self.people.crowd(app.name), False, type
            case "campaign.started":
                return [], False, type
        kinds = {"note.capped": app.capped, "note.waiting": app.waiting, "note.quiet": app.quiet,
                 "note.scheduled": app.steady, "note.gathered": app.digesting}
        return [self.random.choice(kinds[type]).users[0]], True, type


def rfc3339(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="milliseconds")
