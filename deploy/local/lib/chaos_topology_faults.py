"""Faults of the broker's queues, exchanges and bindings."""

import json
import re
import signal
import time
import uuid

from chaos_fault import Fault
from local_stack import eventually

APP = "family-portal"
# Events and notifications of an app without a queue go to the queue of other apps; pushes have no such reserve.
QUEUE = f"apns-sender.pushes.interactive.{APP}"
RETURNED = "any metric heliograph_messages_published_total{result=\"returned\"} rises"
NACKED = "any metric heliograph_messages_published_total{result=\"nacked\"} rises"


def unbind(stack) -> None:
    with stack.channel() as channel:
        channel.queue_unbind(QUEUE, "pushes", f"apns.interactive.{APP}")


class TopologyFault(Fault):
    """A fault that `pushctl topology apply` heals."""

    def end(self, stack):
        stack.apply_topology()


class QueueDeleted(TopologyFault):
    """A queue is deleted under its consumer, and created again at the end. It is unbound and emptied before, because
    its messages would be lost with it.
    """

    name = "queue-deleted"
    numbers = (11,)
    hold = 8
    signals = (RETURNED, "apns-sender not-ready stage: cannot be consumed")

    def begin(self, stack, random):
        unbind(stack)
        eventually(lambda: self.is_empty(stack), 30, f"an empty {QUEUE}")
        with stack.channel() as channel:
            channel.queue_delete(QUEUE)
        return {"queue": QUEUE}

    @staticmethod
    def is_empty(stack) -> bool:
        return next(row["messages"] for row in stack.queues("name", "messages") if row["name"] == QUEUE) == 0


class BindingRemoved(TopologyFault):
    """A queue is unbound: its messages are returned to their publishers."""

    name = "binding-removed"
    numbers = (15,)
    gate = True
    hold = 8
    signals = (RETURNED,)

    def begin(self, stack, random):
        unbind(stack)
        return {"queue": QUEUE}


class ExchangeDeleted(TopologyFault):
    """An exchange is deleted while messages are published to it."""

    name = "exchange-deleted"
    numbers = (14,)
    hold = 8
    signals = ("any log: NOT_FOUND|no exchange|404",)

    def begin(self, stack, random):
        exchange = random.choice(["notifications", "pushes", "outcomes"])
        with stack.channel() as channel:
            channel.exchange_delete(exchange)
        return {"exchange": exchange}


class QueueFull(Fault):
    """The queues of a stopped sender take few messages and reject further ones."""

    name = "queue-full"
    numbers = (16,)
    hold = 15
    signals = (NACKED,)

    def begin(self, stack, random):
        stack.rabbitmqctl(
            "set_policy", "-p", "heliograph", "--apply-to", "queues", "chaos-full",
            r"^apns-sender\.pushes\.[^.]+\.[^.]+$",
            json.dumps({"max-length": 2, "overflow": "reject-publish"}))
        # Only ready messages count, and a running sender takes hundreds.
        stack.stop("apns-sender")
        return {"queues": "apns-sender.pushes.*"}

    def end(self, stack):
        stack.start("apns-sender")
        stack.rabbitmqctl("clear_policy", "-p", "heliograph", "chaos-full", check=False)


class DeadLetterQueueFull(Fault):
    """Poison messages, while their dead-letter queue rejects messages. Its own poison is taken out at the end."""

    name = "dead-letter-queue-full"
    numbers = (24,)
    hold = 15
    signals = (NACKED,)
    queue = f"rules.events.app.{APP}.dead"
    count = 10

    def __init__(self):
        self.mark: str | None = None

    def begin(self, stack, random):
        stack.rabbitmqctl(
            # One policy applies to a queue: this one in place of the retention.
            "set_policy", "-p", "heliograph", "--apply-to", "queues", "--priority", "100", "chaos-dead",
            f"^{re.escape(self.queue)}$",
            json.dumps({"max-length": stack.depth(self.queue) + 1, "overflow": "reject-publish"}))
        self.mark = f"chaos-poison-{uuid.uuid4().hex[:8]}"
        for number in range(self.count):
            stack.publish(
                f"{APP}.chat.message.created", b"{no JSON", message_id=f"{self.mark}-{number}", delivery_mode=2,
                content_type="application/cloudevents+json")
            # The queue tells the channels with a delay that it is full.
            time.sleep(0.3)
        return {"poison": self.count}

    def end(self, stack):
        stack.rabbitmqctl("clear_policy", "-p", "heliograph", "chaos-dead", check=False)
        if self.mark is None:
            return
        # RabbitMQ 3.10 tells a channel that a queue has room when the queue shrinks, not when its limit is lifted.
        stack.close_broker_connections("rules")
        taken: set[str] = set()
        eventually(lambda: len(self.take(stack, taken)) == self.count, 60, "the dead letters of all poison messages")
        self.mark = None

    def take(self, stack, taken: set[str]) -> set[str]:
        """Takes the fault's own messages out of the dead-letter queue, and leaves all others."""
        with stack.channel() as channel:
            for _ in range(channel.queue_declare(self.queue, passive=True).method.message_count):
                method, properties, _ = channel.basic_get(self.queue)
                if method is None:
                    break
                name = properties.message_id or ""
                if name.startswith(self.mark):
                    taken.add(name)
                    channel.basic_ack(method.delivery_tag)
        return taken


class ConsumerTimeout(Fault):
    """The broker closes channels whose deliveries stay unacknowledged for six seconds, while the database is frozen."""

    name = "consumer-timeout"
    numbers = (20,)
    hold = 25
    signals = ("any log: PRECONDITION_FAILED|delivery acknowledgement|406",)

    def begin(self, stack, random):
        self.set(stack, timeout=6_000, tick=1_000)
        # Channels read the settings when they open.
        stack.close_broker_connections()
        time.sleep(5)
        stack.signal("database", signal.SIGSTOP)
        return {"timeout": 6}

    def end(self, stack):
        stack.signal("database", signal.SIGCONT)
        self.set(stack, timeout=1_800_000, tick=60_000)
        stack.close_broker_connections()

    @staticmethod
    def set(stack, timeout: int, tick: int) -> None:
        """Sets both on all nodes of the cluster."""
        stack.rabbitmqctl(
            "eval", f"rpc:multicall(application, set_env, [rabbit, consumer_timeout, {timeout}]), "
                    f"rpc:multicall(application, set_env, [rabbit, channel_tick_interval, {tick}]).")


FAULTS: list[Fault] = [
    QueueDeleted(), BindingRemoved(), ExchangeDeleted(), QueueFull(), DeadLetterQueueFull(), ConsumerTimeout(),
]
