"""Publishes the events of a chaos run at a steady rate, as an upstream does."""

import contextlib
import itertools
import random
import threading
import time
from dataclasses import dataclass

import pika
from chaos_history import History, Operation
from chaos_people import People
from chaos_workload import CROWDS, Event, Events

class Publisher:
    """A thread with a connection of its own. `flows` pauses it."""

    def __init__(self, stack, people: People, history: History, seed: int, rate: float, flows: threading.Event):
        self.stack, self.history, self.rate, self.flows = stack, history, rate, flows
        self.random = random.Random(seed)
        self.workload = Events(people, seed)
        self.events, self.crowds = iter(self.workload), itertools.count()
        self.ends = threading.Event()
        self.texts: list[str] = []
        # Events of large groups and campaigns, to be published next.
        self.large: list[Event] = []
        self.thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.ends.set()
        self.flows.set()
        self.thread.join(90)

    def call_crowds(self, apps) -> None:
        """Adds an event to a large group and one to every device of these apps."""
        self.large += [self.workload.crowd(app, type, next(self.crowds)) for app in apps for type in CROWDS]

    def _connection(self) -> pika.BlockingConnection:
        urls = self.stack.env["AMQP_NODE_URLS"].split()
        parameters = [pika.URLParameters(f"{url}?heartbeat=5&blocked_connection_timeout=15&socket_timeout=5"
                                         "&connection_attempts=1&stack_timeout=8") for url in urls]
        self.random.shuffle(parameters)
        return pika.BlockingConnection(parameters)

    def _work(self) -> None:
        again: list[Attempt] = []
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

    def _publish_events(self, connection, channel, again: list["Attempt"]) -> None:
        while not self.ends.is_set():
            while not self.flows.wait(1) and not self.ends.is_set():
                connection.process_data_events()
            if self.ends.is_set():
                return
            begun = time.monotonic()
            self._publish(channel, again.pop() if again else self._next(), again)
            pause = 1 / self.rate - (time.monotonic() - begun)
            if pause > 0:
                time.sleep(pause)

    def _next(self) -> "Attempt":
        event = self.large.pop(0) if self.large else next(self.events)
        self.texts.append(event.text)
        return Attempt(event, time.time())

    def _publish(self, channel, attempt: "Attempt", again: list["Attempt"]) -> None:
        event, operation = attempt.event, attempt.operation()
        self.history.invoke(operation)
        try:
            channel.basic_publish(
                "events", event.key, event.body(attempt.first),
                pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2), mandatory=True)
            operation.result = "ok"
        except (pika.exceptions.UnroutableError, pika.exceptions.NackError) as refusal:
            operation.result, operation.error = "failed", repr(refusal)[:80]
        except Exception as error:
            operation.error = repr(error)[:80]
            raise
        finally:
            operation.ended = time.time()
            self.history.add(operation)
            if not attempt.is_last and (event.twice if operation.result == "ok" else event.retried):
                again.append(Attempt(event, attempt.first, is_last=operation.result == "ok"))


@dataclass
class Attempt:
    """An event to publish. Its body has the times of the first attempt."""

    event: Event
    first: float
    is_last: bool = False

    def operation(self) -> Operation:
        event = self.event
        expires = None if event.expires_after is None else self.first + event.expires_after
        return Operation(
            "published", "unknown", time.time(), 0, event.app, event.id, event.type, event.users, expires,
            event.steady, monotonic=time.monotonic())
