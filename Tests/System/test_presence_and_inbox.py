"""Presence, mutes and the inbox decide whether a user gets a push; `pushctl explain` prints the reason."""

import collections
import json
import subprocess

import pytest
from local_stack import cloud_event, eventually, sql
from sentinels import all_is_handled

APP = "family-portal"


@pytest.fixture
def chat(stack, phones):
    """Publishes a chat message from user 1 to users 2 and 3, each with a phone. Returns the phones that got a push."""
    tokens = {"p2": "a2" * 32, "p3": "a3" * 32}
    for user, token in tokens.items():
        phones(APP, user, token)

    def write(id: str, thread: int | None = None) -> list[str]:
        data = {
            "message": {"id": 1, "text": "Dinner?", "thread_id": thread},
            "sender": {"id": "p1", "name": "Pat"},
            "participants": ["p1", "p2", "p3"],
            "family": {"id": 7},
        }
        stack.publish(
            f"{APP}.chat.message.created", cloud_event("chat.message.created", data, id),
            content_type="application/cloudevents+json",
        )
        eventually(lambda: explained(stack, id), what="the decision")
        all_is_handled(stack, APP)
        seen = collections.Counter(request.get("token") for request in stack.requests("apns"))
        stack.forget_requests()
        # A duplicate push counts twice.
        return sorted(user for user, token in tokens.items() for _ in range(seen[token]))

    return write


def explained(stack, id: str) -> str:
    """The output of `pushctl explain`; empty until a decision exists."""
    done = subprocess.run(
        [stack.product("pushctl"), "explain", id, "--app", APP],
        env={"DATABASE_URL": stack.env["DATABASE_URL"]}, capture_output=True, text=True, timeout=30,
    )
    return done.stdout if done.returncode == 0 else ""


def part(story: str, user: str) -> str:
    """The lines about one user."""
    lines = story.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"  {user}  "))
    rest = [number for number in range(start + 1, len(lines)) if not lines[number].startswith("    ")]
    return "\n".join(lines[start : (rest or [len(lines)])[0]])


def test_an_active_user_gets_no_push_and_the_inbox_has_the_message(stack, chat):
    assert chat("people-1") == ["p2", "p3"]
    user = {"user": {"id": "p2", "connection": "web"}}
    for id, type in [("people-2", "chat.connection.active"), ("people-4", "chat.connection.closed")]:
        stack.publish(f"{APP}.{type}", cloud_event(type, user, id), content_type="application/cloudevents+json")
        eventually(lambda id=id: explained(stack, id), what=f"{type} to be taken")
        if id == "people-2":
            assert chat("people-3") == ["p3"]
            assert "inbox  (present)" in part(explained(stack, "people-3"), "p2")
            assert "in the inbox, unread" in part(explained(stack, "people-3"), "p2")
    assert chat("people-5") == ["p2", "p3"]
    inbox = sql(stack, "SELECT count(*) FROM rules.inbox WHERE app = 'family-portal' AND user_id = 'p2'")
    assert inbox == "3"


def test_a_muted_thread_gets_no_push_and_other_threads_do(stack, chat):
    settings = json.dumps({"mutes": {"thread/9": {"muted": True}}})
    sql(
        stack,
        "INSERT INTO rules.person (app, user_id, settings) "
        f"VALUES ('family-portal', 'p3', '{settings}') "
        "ON CONFLICT (app, user_id) DO UPDATE SET settings = EXCLUDED.settings",
    )
    assert chat("people-6", thread=9) == ["p2"]
    assert "inbox  (muted)" in part(explained(stack, "people-6"), "p3")
    assert chat("people-7", thread=10) == ["p2", "p3"]
