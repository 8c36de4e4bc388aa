"""SIGKILL of each of seven processes while a thousand events are processed: no push is missing, and few are repeated.
"""

import collections
import json
import time
import uuid

import pika
import pytest

from local_stack import cloud_event, eventually

EVENTS = 1000
TYPE = "chat.message.created"
VICTIMS = ["rules", "token-registry", "apns-sender", "fcm-sender", "feedback", "broker", "database"]
# The maximum repeats of one crash: the unacknowledged deliveries of the killed process, or of all processes for the
# broker.
PREFETCH = 300
STAGES_OF_A_PUSH = 3


def publish_surely(stack, victim: str, bodies: dict[str, bytes], on_half) -> None:
    """Publishes each event until the broker confirms it, like an upstream service with an outbox."""
    pending = collections.deque(bodies.items())
    half = len(bodies) // 2
    halved = False
    deadline = time.monotonic() + 120
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


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_thousand_events_survive_a_kill_of(stack, phones, victim):
    run = uuid.uuid4().hex[:8]
    apns, fcm = uuid.uuid4().hex, f"fcm:{run}"
    phones("family-portal", f"ios-{run}", apns)
    phones("family-portal", f"android-{run}", fcm, platform="android")
    bodies = {}
    for number in range(EVENTS):
        event = f"{run}-{number}"
        reader = f"android-{run}" if number % 2 else f"ios-{run}"
        data = {"message": {"id": event, "text": event, "thread_id": None}, "sender": {"id": "w", "name": "P"},
                "participants": [reader]}
        bodies[event] = cloud_event(TYPE, data, event)

    def kill_and_start():
        stack.service("kill", victim)
        stack.service("start", victim)

    publish_surely(stack, victim, bodies, kill_and_start)

    def seen() -> collections.Counter:
        ios = [r["body"]["data"]["message_id"] for r in stack.requests("apns") if r.get("token") == apns]
        android = [r["body"]["message"]["data"]["message_id"] for r in stack.requests("fcm") if r.get("token") == fcm]
        return collections.Counter(ios + android)

    try:
        eventually(lambda: len(seen()) == EVENTS, 90, "every event's push")
    except AssertionError:
        missing = sorted(set(bodies) - set(seen()))
        queues = ("rules.events", "rules.events.app.family-portal", "feedback.outcomes")
        dead = {queue: stack.depth(f"{queue}.dead") for queue in queues}
        raise AssertionError(f"{len(missing)} of {EVENTS} are missing, such as {missing[:5]}; dead letters: {dead}")
    extra = sum(seen().values()) - EVENTS
    bound = PREFETCH * STAGES_OF_A_PUSH if victim == "broker" else PREFETCH
    print(json.dumps({"victim": victim, "events": EVENTS, "duplicates": extra, "bound": bound}))
    assert extra <= bound
