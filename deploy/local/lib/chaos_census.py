"""Takes one message from a queue by hand. The census must name the stage that misses it."""

import time
import uuid
from collections.abc import Callable

from chaos_history import CensusLoss
from chaos_workload import Event
from local_stack import eventually

# Seconds that a run waits for the gap. The check allows fewer.
PATIENCE = 90


def from_registry(stack, app: str, publish: Callable[[], None]) -> None:
    stack.service("kill", "token-registry")
    publish()
    take_one(stack, f"token-registry.notifications.interactive.app.{app}")
    stack.service("start", "token-registry")


def from_sender(stack, app: str, publish: Callable[[], None]) -> None:
    stack.service("kill", "apns-sender")
    publish()
    take_one(stack, f"apns-sender.pushes.interactive.{app}")
    stack.service("start", "apns-sender")


def from_outcomes(stack, app: str, publish: Callable[[], None]) -> None:
    stack.service("kill", "apns-sender")
    publish()
    await_one(stack, f"apns-sender.pushes.interactive.{app}")
    stack.service("kill", "rules")
    stack.service("start", "apns-sender")
    take_one(stack, "rules.outcomes")
    stack.service("start", "rules")


# By the state of the census. Each function publishes an event for a user with one iPhone, and takes a message of it
# while the next service is away.
PLACES = {"missing-registry": from_registry, "missing-sender": from_sender, "missing-outcomes": from_outcomes}


def await_one(stack, queue: str) -> None:
    eventually(lambda: stack.depth(queue) == 1, what=f"one message in {queue}")


def take_one(stack, queue: str) -> None:
    """Gets and acknowledges the only message of a queue."""
    await_one(stack, queue)
    taken = len(stack.take(queue))
    if taken != 1:
        raise RuntimeError(f"took {taken} messages from {queue}")


def lose_message(stack, people, random) -> CensusLoss:
    """Takes a message at a random place, and waits until the census names it."""
    state = random.choice(sorted(PLACES))
    phone = random.choice([phone for app in people.apps.values() for phone in app.steady if phone.provider == "apns"])
    loss = CensusLoss(f"census-{uuid.uuid4()}", state)

    def publish() -> None:
        event = Event(phone.app, "note.plain", loss.event, "taken by hand", (phone.users[0],))
        stack.publish(event.key, event.body(time.time()), content_type="application/cloudevents+json", delivery_mode=2)

    try:
        PLACES[state](stack, phone.app, publish)
        loss.taken = time.time()
        loss.named = eventually(
            lambda: stack.sql(f"SELECT state FROM rules.census_gap WHERE event = '{loss.event}'"), PATIENCE, "the gap")
        loss.found = time.time()
    except (AssertionError, RuntimeError) as failure:
        loss.problem = str(failure)[-400:]
    others = stack.sql(
        f"SELECT state, event, notification FROM rules.census_gap WHERE event IS DISTINCT FROM '{loss.event}'")
    loss.others = tuple(others.splitlines())
    return loss
