"""Pushes for a user who lost the device are not sent, wherever they are queued."""

import json
import subprocess
import uuid

import pytest
from local_stack import eventually, sql
from test_device_events import nothing_waits
from test_token_deactivation import requests_of, script, tell

APP = "family-portal"
QUEUE = f"apns-sender.pushes.interactive.{APP}"


def explained(stack, event: str) -> str:
    done = subprocess.run([stack.product("pushctl"), "explain", event], env={**stack.environment, **stack.env},
                          capture_output=True, text=True, timeout=30)
    return done.stdout


def is_revoked(stack, event: str) -> bool:
    return "skipped  revoked" in explained(stack, event)


def messages(stack, token: str) -> list[str]:
    return [request["body"]["data"]["message_id"] for request in requests_of(stack, token)]


def metric(stack, name: str, *labels: str) -> float:
    """The sum of a metric of the APNs sender over series with these labels."""
    status, text = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('apns-sender')}/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line.startswith(name) and all(label in line for label in labels)]
    return sum(float(line.split()[-1]) for line in lines)


def test_pushes_queued_while_the_sender_was_down_are_not_sent_to_the_next_owner(stack, phones):
    first, second, leaving, erased = (f"{name}-{uuid.uuid4()}" for name in "abcd")
    taken, left, forgotten = (uuid.uuid4().hex for _ in range(3))
    for user, token in ((first, taken), (leaving, left), (erased, forgotten)):
        phones(APP, user, token)
    stack.service("stop", "apns-sender")
    try:
        events = [tell(stack, user) for user in (first, leaving, erased)]
        eventually(lambda: stack.depth(QUEUE) == 3, what="three pushes in the queue")
        phones(APP, second, taken)
        phones(APP, leaving, left, verb="unregister")
        status, _ = stack.http(
            "DELETE", f"{stack.env['REGISTRY_URL']}/v1/operator/devices?app={APP}&user={erased}",
            headers={"Authorization": f"Bearer {stack.env['REGISTRY_OPERATOR_KEY']}"})
        assert status in (200, 204)
        own = tell(stack, second)
        eventually(lambda: stack.depth(QUEUE) == 4, what="the next owner's push in the queue")
        eventually(lambda: nothing_waits(stack), what="an empty outbox")
    finally:
        stack.service("start", "apns-sender")
    eventually(lambda: messages(stack, taken) == [own], 60, "the next owner's push")
    for event in events[:2]:
        eventually(lambda event=event: is_revoked(stack, event), 60, "a word on what was revoked")
    eventually(lambda: stack.depth(QUEUE) == 0, what="an empty queue")
    assert (messages(stack, taken), messages(stack, left), messages(stack, forgotten)) == ([own], [], [])
    assert metric(stack, "heliograph_push_targets_revoked_total") == 3
    # A user who registers the device again gets pushes again.
    phones(APP, leaving, left)
    back = tell(stack, leaving)
    eventually(lambda: messages(stack, left) == [back], what="the push after the return")


def test_a_push_waiting_for_a_retry_is_not_sent_to_the_next_owner(stack, phones):
    first, second, token = f"a-{uuid.uuid4()}", f"b-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, first, token)
    script(stack, provider="apns", token=token, status=502, body="", count=1)
    event = tell(stack, first)
    eventually(lambda: len(requests_of(stack, token)) == 1, what="the push that is refused")
    phones(APP, second, token)
    own = tell(stack, second)
    eventually(lambda: messages(stack, token) == [event, own], what="the next owner's push")
    # The retry level returns it after half a minute.
    eventually(lambda: is_revoked(stack, event), 120, "a word on what was revoked")
    assert messages(stack, token) == [event, own]


def test_a_push_kept_by_a_paused_route_is_not_sent_to_the_next_owner(stack, phones):
    first, second, token = f"a-{uuid.uuid4()}", f"b-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, first, token)
    stack.service("stop", "provider-simulator")
    try:
        event = tell(stack, first)
        lane = ("heliograph_route_open{", f'app="{APP}"', 'environment="production"')
        eventually(lambda: metric(stack, *lane) == 0, 60, "a lane that pauses")
        phones(APP, second, token)
        own = tell(stack, second)
        eventually(lambda: nothing_waits(stack), what="an empty outbox")
    finally:
        stack.service("start", "provider-simulator")
    eventually(lambda: is_revoked(stack, event), 180, "a word on what was revoked")
    eventually(lambda: messages(stack, token) == [own], 180, "the next owner's push")
    assert messages(stack, token) == [own]


@pytest.mark.parametrize("change", [{"types": {"chat": False}}, {"mutes": {"thread/9": {"muted": True}}}])
def test_a_preference_disabled_before_delivery_stops_the_push(stack, phones, change):
    user, token = f"p-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    stack.service("stop", "apns-sender")
    try:
        event = tell(stack, user, thread=9)
        eventually(lambda: stack.depth(QUEUE) > 0, what="the push in the queue")
        status, answer = stack.http(
            "PATCH", f"{stack.env['RULES_URL']}/v1/preferences", raw=json.dumps(change).encode(),
            headers={"Authorization": f"Bearer {stack.bearer(APP, user)}",
                     "Content-Type": "application/merge-patch+json"})
        assert status == 200, answer
        eventually(lambda: sql(stack, "SELECT count(*) FROM rules.preference_change") == "0", what="the revocation")
    finally:
        stack.service("start", "apns-sender")
    eventually(lambda: is_revoked(stack, event), 60, "the outcome of the revoked push")
    assert messages(stack, token) == []
    assert sql(stack, f"SELECT count(*) FROM rules.inbox WHERE user_id = '{user}' AND read_at IS NULL") == "1"
