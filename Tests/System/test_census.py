"""The census: a message that is taken from a queue by hand is named with its stage within a minute."""

import time
import uuid

import pytest
from chaos_census import PLACES, take_one
from local_stack import cloud_event, eventually, sql

APP = "family-portal"
TYPE = "chat.message.created"
LIMIT = 60


def tell(stack, user: str, event: str) -> str:
    data = {"message": {"id": event, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
            "participants": [user]}
    stack.publish(f"{APP}.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")
    return event


def from_feedback(stack, publish, token: str) -> None:
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes",
                                {"provider": "apns", "token": token, "status": 410, "reason": "Unregistered",
                                 "timestamp": int(time.time() * 1000) + 1000})
    assert status in (200, 201, 204), answer
    # A killed process would leave its last seconds unknown.
    stack.service("stop", "feedback")
    publish()
    take_one(stack, "feedback.outcomes")
    stack.service("start", "feedback")


@pytest.mark.parametrize("state", [*PLACES, "missing-feedback"])
def test_the_census_names_the_stage_of_a_lost_message(stack, phones, state):
    user, token = f"census-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    event = f"census-{uuid.uuid4()}"
    if state in PLACES:
        PLACES[state](stack, APP, lambda: tell(stack, user, event))
    else:
        from_feedback(stack, lambda: tell(stack, user, event), token)
    start = time.monotonic()
    found = f"SELECT state FROM rules.census_gap WHERE event = '{event}'"
    named = eventually(lambda: sql(stack, found), LIMIT, f"the gap {state}")
    print(f"{state}: named after {time.monotonic() - start:.0f} s")
    assert named == state
    code, output = stack.pushctl("census", "--app", APP)
    assert code == 1, output
    row = next(line.split() for line in output.splitlines() if line.startswith(APP) and state in line)
    assert int(row[2]) >= 1
    assert "next: pushctl explain" in output and f"--app {APP}" in output


def test_traffic_leaves_no_gap_and_the_total_is_the_number_of_notifications(stack, phones):
    """Each event is to a user with a phone and one without."""
    user, token = f"census-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    events = [tell(stack, person, f"census-{uuid.uuid4()}") for _ in range(20) for person in (user, f"{user}-without")]
    for event in events:
        eventually(lambda: stack.is_answered(event), what="the answers")
    names = ", ".join(f"'{event}'" for event in events)
    assert sql(stack, f"SELECT count(*) FROM rules.census_gap WHERE event IN ({names})") == "0"
    decided = """
        SELECT count(DISTINCT notification) FROM rules.decision
        WHERE decided_at >= (SELECT min(start_at) FROM rules.census_interval WHERE start_at > '-infinity')"""
    without = """
        SELECT count(*) FROM rules.event
        WHERE arrived_at >= (SELECT min(start_at) FROM rules.census_interval WHERE start_at > '-infinity')
            AND NOT EXISTS (SELECT FROM rules.decision WHERE decision.event = event.key)"""

    def adds_up() -> bool:
        _, output = stack.pushctl("census")
        total = next(line.split()[1] for line in output.splitlines() if line.startswith("total"))
        queued = sum(int(line.split()[2]) for line in output.splitlines()
                     if len(line.split()) >= 3 and line.split()[1] in ("queued", "dead-letter"))
        return int(total) - queued == int(sql(stack, decided)) + int(sql(stack, without))

    eventually(adds_up, 120, "a total that equals the number of notifications")
    assert sql(stack, f"SELECT count(*) FROM rules.census_gap WHERE event IN ({names})") == "0"
