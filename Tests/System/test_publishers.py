"""Events from other AMQP clients: pika and amqp-publish, in every CloudEvents mode."""

import json
import subprocess
import uuid

import pytest

from local_stack import cloud_event, eventually
from sentinels import all_is_handled

TYPE = "chat.message.created"
KEY = f"family-portal.{TYPE}"


def chat(text: str, reader: str) -> dict:
    return {
        "message": {"id": 1, "text": text, "thread_id": None},
        "sender": {"id": "writer", "name": "Pat"},
        "participants": ["writer", reader],
    }


def arrived(stack, token: str, text: str):
    def look():
        return [
            request for request in stack.requests("apns")
            if request.get("token") == token and request["body"]["aps"]["alert"]["body"] == f"Pat: {text}"
        ]

    return eventually(look, what=f"the push that says {text!r}")


@pytest.mark.parametrize("delivery_mode", [1, 2])
@pytest.mark.parametrize("mode", ["structured", "binary with _", "binary with :"])
def test_pika(stack, phones, mode, delivery_mode):
    token = uuid.uuid4().hex * 2
    phones("family-portal", f"reader-{token[:8]}", token)
    event = f"pika-{uuid.uuid4()}"
    data = chat(event, f"reader-{token[:8]}")
    if mode == "structured":
        stack.publish(KEY, cloud_event(TYPE, data, event), content_type="application/cloudevents+json",
                      delivery_mode=delivery_mode)
    else:
        prefix = "cloudEvents" + mode[-1]
        headers = {"specversion": "1.0", "id": event, "source": "/system-test", "type": TYPE}
        stack.publish(KEY, json.dumps(data).encode(), content_type="application/json", delivery_mode=delivery_mode,
                      headers={prefix + name: value for name, value in headers.items()})
    assert len(arrived(stack, token, event)) == 1


@pytest.mark.parametrize("persistent", [[], ["-p"]])
def test_amqp_publish(stack, phones, persistent):
    token = uuid.uuid4().hex * 2
    phones("family-portal", f"reader-{token[:8]}", token)
    event = f"amqp-tools-{uuid.uuid4()}"
    subprocess.run(
        ["amqp-publish", "-u", stack.env["AMQP_URL"], "-e", "events", "-r", KEY, "-C", "application/cloudevents+json",
         *persistent],
        input=cloud_event(TYPE, chat(event, f"reader-{token[:8]}"), event), check=True, timeout=20,
    )
    assert len(arrived(stack, token, event)) == 1


def test_an_event_repeated_after_its_outcome_is_not_pushed_again(stack, phones):
    token = uuid.uuid4().hex * 2
    phones("family-portal", "twice", token)
    event = f"twice-{uuid.uuid4()}"
    for _ in range(2):
        stack.publish(KEY, cloud_event(TYPE, chat(event, "twice"), event), content_type="application/cloudevents+json")
        # The outcome in rules' tables completes the event.
        arrived(stack, token, event)
        eventually(lambda: stack.is_answered(event), what="the outcome in rules' tables")
    # The queue is processed in order, so a later event proves that both were processed.
    later = f"later-{uuid.uuid4()}"
    stack.publish(KEY, cloud_event(TYPE, chat(later, "twice"), later), content_type="application/cloudevents+json")
    arrived(stack, token, later)
    assert len(arrived(stack, token, event)) == 1


def test_endgame_alerts_the_hider_and_wakes_the_seekers_silently(stack, phones):
    hider, seeker = uuid.uuid4().hex, uuid.uuid4().hex
    phones("hide-and-seek", "h", hider)
    phones("hide-and-seek", "s", seeker, environment="sandbox")
    players = [{"user": "h", "role": "hider"}, {"user": "s", "role": "seeker"}]
    stack.publish(
        "hide-and-seek.game.phase.changed",
        cloud_event("game.phase.changed", {"game": {"id": "g", "phase": "endgame"}, "players": players}, f"e-{hider}"),
        content_type="application/cloudevents+json",
    )
    all_is_handled(stack, "hide-and-seek")
    requests = [request for request in stack.requests("apns") if request["token"] in (hider, seeker)]
    by_token = {request["token"]: request for request in requests}
    assert len(requests) == len(by_token) == 2
    data = {"event_type": "phase_changed", "game_id": "g"}
    assert by_token[hider]["body"]["aps"]["alert"]["body"] == "Endgame! Stay where you are."
    assert by_token[seeker]["body"] == {"aps": {"content-available": 1}, "data": data}
    assert by_token[seeker]["headers"]["apns-push-type"] == "background"
    assert by_token[seeker]["headers"]["apns-priority"] == "5"
