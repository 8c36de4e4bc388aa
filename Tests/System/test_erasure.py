"""Erasure removes a user from the tables of every service, and from messages in flight."""

import functools
import json
import subprocess
import time
import uuid

import local_stack
from local_stack import cloud_event, eventually

APP = "family-portal"
SCHEMAS = ("rules", "registry", "feedback")

# Statements over many rows.
sql = functools.partial(local_stack.sql, timeout=60)


def places(stack, text: str) -> set[str]:
    """The tables of all services with this text in any column."""
    tables = sql(stack, "SELECT table_schema || '.' || table_name FROM information_schema.tables "
                        f"WHERE table_schema IN {SCHEMAS} AND table_type = 'BASE TABLE'").split()
    assert len(tables) > 30
    return {table for table in tables
            if sql(stack, f"SELECT count(*) FROM {table} AS one WHERE position(:'text' IN one::text) > 0", text=text) != "0"}


def write(stack, id: str, user: str, at: str | None = None) -> None:
    """A chat message to the user and one other user."""
    event = json.loads(cloud_event("chat.message.created", {
        "message": {"id": 1, "text": "Dinner?", "thread_id": None}, "sender": {"id": "someone", "name": "Pat"},
        "participants": ["someone", user, "other"], "family": {"id": 7}}, id))
    if at:
        event["time"] = at
    stack.publish(f"{APP}.chat.message.created", json.dumps(event).encode(), content_type="application/cloudevents+json")


def decided(stack, id: str) -> list[str]:
    """The users with a decision for an event."""
    return sql(stack, "SELECT user_id FROM rules.decision JOIN rules.event ON key = event WHERE id = :'id'", id=id).split()


def is_decided(stack, id: str) -> bool:
    return sql(stack, "SELECT count(*) FROM rules.event WHERE id = :'id'", id=id) == "1"


def erase(stack, user: str) -> str:
    done = subprocess.run(
        [stack.product("pushctl"), "devices", "erase", "--app", APP, "--user", user, "--yes"],
        env={**stack.environment, **stack.env}, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


def test_an_erased_user_is_in_no_table_of_any_service(stack, phones):
    user, token = f"erase-{uuid.uuid4()}", uuid.uuid4().hex * 2
    dead = uuid.uuid4().hex * 2
    phones(APP, user, token)
    phones(APP, user, dead)
    device = sql(stack, "SELECT device_id FROM registry.registration WHERE user_id = :'user' ORDER BY registered_at DESC LIMIT 1", user=user)
    # Stored tokens are encrypted.
    assert places(stack, token) == places(stack, dead) == set()
    # One phone is unregistered, so that feedback stores evidence.
    script = {"provider": "apns", "token": dead, "status": 410, "reason": "Unregistered",
              "timestamp": int(time.time() * 1000) + 1000}
    status, _ = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", script)
    assert status in (200, 201, 204), status
    first = str(uuid.uuid4())
    write(stack, first, user)
    eventually(lambda: stack.is_answered(first), what="the providers' answers")
    eventually(lambda: "feedback.evidence" in places(stack, device), what="evidence about the phone that is gone")
    headers = {"Authorization": f"Bearer {stack.bearer(APP, user)}"}
    for method, path, body in [("PATCH", "preferences", {"zone": "Asia/Tokyo"}), ("PUT", "presence/phone", {})]:
        status, answer = stack.http(method, f"{stack.env['RULES_URL']}/v1/{path}", body, headers)
        assert status < 300, answer
    kept = places(stack, user)
    assert {"rules.person", "rules.inbox", "rules.decision", "rules.presence", "registry.registration"} <= kept, kept

    assert erase(stack, user).strip() == "registrations erased: 2"
    # Only the registry remembers the erasure, for a limited time.
    eventually(lambda: places(stack, user) == {"registry.erasure", "registry.registration"}, 60, "an end of all traces")
    assert places(stack, token) == places(stack, dead) == set()
    states = sql(stack, "SELECT DISTINCT state FROM registry.registration WHERE user_id = :'user'", user=user)
    assert states == "erased"
    eventually(lambda: "feedback.evidence" not in places(stack, device), what="evidence to be gone")

    # A late event from before the erasure ignores the user; a new event does not.
    late, new = str(uuid.uuid4()), str(uuid.uuid4())
    write(stack, late, user, at="2026-01-01T00:00:00Z")
    eventually(lambda: is_decided(stack, late), what="the late event's decision")
    assert decided(stack, late) == ["other"]
    write(stack, new, user)
    eventually(lambda: is_decided(stack, new), what="the new event's decision")
    assert set(decided(stack, new)) == {user, "other"}
    for queue in ("rules.erasures", "feedback.erasures"):
        assert stack.depth(queue) == 0 and stack.depth(f"{queue}.dead") == 0
