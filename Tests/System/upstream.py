"""An upstream service with an outbox, and the pushes that its events cause."""

import collections
import time
import uuid

import pika

from local_stack import cloud_event, eventually

TYPE = "chat.message.created"


def chat_event(reader: str, id: str, text: str = "x") -> bytes:
    """A chat message to one user, as a CloudEvent of family-portal."""
    return cloud_event(TYPE, {"message": {"id": id, "text": text, "thread_id": None}, "sender": {"id": "w", "name": "P"},
                              "participants": [reader]}, id)


def publish_surely(stack, bodies: dict[str, bytes], on_half, within: float = 120) -> None:
    """Publishes each event until the broker confirms it. Calls `on_half` once half of them are confirmed."""
    pending = collections.deque(bodies.items())
    half = len(bodies) // 2
    halved = False
    deadline = time.monotonic() + within
    while pending:
        assert time.monotonic() < deadline, f"{len(pending)} events could not be published"
        try:
            with stack.channel() as channel:
                while pending:
                    if not halved and len(pending) <= half:
                        halved = True
                        on_half()
                    event, body = pending[0]
                    channel.basic_publish(
                        "events", f"family-portal.{TYPE}", body,
                        pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2),
                        mandatory=True)
                    pending.popleft()
        except (pika.exceptions.AMQPError, OSError):
            time.sleep(0.2)  # The broker is the victim: its port opens again in a while.


class ChatEvents:
    """`count` chat events to one iOS and one Android device in turn, and their pushes."""

    def __init__(self, stack, phones, count: int):
        self.stack = stack
        self.count = count
        run = uuid.uuid4().hex[:8]
        self._apns, self._fcm = uuid.uuid4().hex, f"fcm:{run}"
        phones("family-portal", f"ios-{run}", self._apns)
        phones("family-portal", f"android-{run}", self._fcm, platform="android")
        self.bodies = {}
        for number in range(count):
            event = f"{run}-{number}"
            reader = f"android-{run}" if number % 2 else f"ios-{run}"
            self.bodies[event] = chat_event(reader, event, text=event)

    def seen(self) -> collections.Counter:
        """The number of pushes of each event."""
        apns, fcm = self.stack.requests("apns"), self.stack.requests("fcm")
        ios = [r["body"]["data"]["message_id"] for r in apns if r.get("token") == self._apns]
        android = [r["body"]["message"]["data"]["message_id"] for r in fcm if r.get("token") == self._fcm]
        return collections.Counter(ios + android)

    def await_all(self, within: float = 90) -> int:
        """Waits for a push of every event, and returns the number of repeated pushes."""
        try:
            eventually(lambda: len(self.seen()) == self.count, within, "every event's push")
        except AssertionError:
            missing = sorted(set(self.bodies) - set(self.seen()))
            queues = ("rules.events", "rules.events.app.family-portal", "feedback.outcomes")
            dead = {queue: self.stack.depth(f"{queue}.dead") for queue in queues}
            found = f"{len(missing)} of {self.count} are missing, such as {missing[:5]}; dead letters: {dead}"
            raise AssertionError(found)
        return sum(self.seen().values()) - self.count
