"""Direct notifications: the same decisions over the bus, pushctl and HTTP, and the commands of the page."""

import json
import re
import shlex
import subprocess
import uuid

import pytest
from local_stack import ROOT, cloud_event, eventually
from sentinels import all_is_handled

APP = "family-portal"
TYPE = "heliograph.notification.requested"
PAGE = ROOT / "deploy" / "operations" / "direct-send.md"


def pushctl(stack, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([stack.product("pushctl"), *arguments], env={**stack.environment, **stack.env},
                          cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=60)


def publish(stack, data: dict, event: str) -> None:
    stack.publish(f"{APP}.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")


def decisions(stack, event: str) -> list[str]:
    """`user rule answer reason` of each decision about an event."""
    done = subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"event={event}"],
        input="SELECT concat_ws(' ', d.user_id, d.rule, d.answer, d.reason) FROM rules.decision d "
              "JOIN rules.event e ON e.key = d.event WHERE e.id = :'event' ORDER BY 1",
        capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.split("\n")[:-1]


def pushes(stack, token: str) -> list[dict]:
    return [request for request in stack.requests("apns") if request.get("token") == token]


def by_the_bus(stack, data: dict) -> str:
    event = f"bus-{uuid.uuid4()}"
    publish(stack, data, event)
    return event


def by_pushctl(stack, data: dict) -> str:
    event = f"pushctl-{uuid.uuid4()}"
    done = pushctl(stack, "send", "--app", APP, "--id", event, "--file", "-", stdin=json.dumps(data))
    assert done.returncode == 0 and f"pushctl explain {event}" in done.stdout, done
    return event


def post(stack, data: dict, query: str = "", idempotency_key: str = "") -> dict:
    created = pushctl(stack, "keys", "create", "--service", "rules", "--name", "direct", "--app", APP, "--may",
                      "notifications:send")
    assert created.returncode == 0, created
    headers = {"Authorization": f"Bearer {created.stdout.strip()}"}
    if idempotency_key:
        headers["Idempotency-Key"] = idempotency_key
    status, answer = stack.http("POST", f"{stack.env['EVENTS_API_URL']}/v1/notifications{query}", data, headers, timeout=60)
    assert status == (200 if query else 202), answer
    return answer


def by_http(stack, data: dict) -> str:
    event = f"http-{uuid.uuid4()}"
    assert post(stack, data | {"id": event})["events"][0]["id"] == event
    return event


def test_each_door_gives_the_same_decisions_and_one_push(stack, phones):
    user, token = f"direct-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    data = {"users": [user, f"no-phone-{user}"], "type": "chat",
            "content": {"title": "{{secret}}", "body": "Hello", "data": {"n": 1}}}
    events = [door(stack, data) for door in DOORS]
    for event in events:
        eventually(lambda: stack.is_answered(event), what=f"the outcomes of {event}")
    rows = [decisions(stack, event) for event in events]
    assert rows[0] == [f"{user} direct.chat push wanted", f"no-phone-{user} direct.chat push wanted"]
    assert all(row == rows[0] for row in rows)
    assert len(pushes(stack, token)) == len(events)
    for request in pushes(stack, token):
        assert request["body"]["aps"]["alert"] == {"title": "{{secret}}", "body": "Hello"}
        assert request["body"]["data"] == {"n": 1}


def test_a_repeated_notification_notifies_nobody(stack, phones):
    user, token = f"repeated-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    data = {"users": [user], "content": {"body": "Once"}}
    event = by_the_bus(stack, data)
    eventually(lambda: stack.is_answered(event), what="the outcome")
    publish(stack, data, event)
    all_is_handled(stack, APP)
    assert len(pushes(stack, token)) == 1 and len(decisions(stack, event)) == 1


def test_preferences_and_schedule_hold(stack, phones):
    user, token = f"settings-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    headers = {"Authorization": f"Bearer {stack.bearer(APP, user)}"}
    status, answer = stack.http("PATCH", f"{stack.env['RULES_URL']}/v1/preferences", {"types": {"direct": False}}, headers)
    assert status == 200 and answer["types"]["direct"]["on"] is False
    off = by_the_bus(stack, {"users": [user], "content": {"body": "Off"}})
    later = by_pushctl(stack, {"users": [user], "type": "chat", "content": {"body": "L"}, "at": "2099-01-01T00:00:00Z"})
    eventually(lambda: decisions(stack, off) and decisions(stack, later), what="the decisions")
    assert decisions(stack, off) == [f"{user} direct inbox type-off"]
    assert decisions(stack, later) == [f"{user} direct.chat hold scheduled"]
    status, inbox = stack.http("GET", f"{stack.env['RULES_URL']}/v1/inbox", headers=headers)
    assert [item["type"] for item in inbox["items"]] == ["direct"] and inbox["items"][0]["body"] == "Off"
    assert not pushes(stack, token)


def test_a_tag_gets_it_in_the_bulk_lane(stack, phones):
    user, token, tag = f"tagged-{uuid.uuid4()}", uuid.uuid4().hex, f"direct-{uuid.uuid4().hex[:8]}"
    phones(APP, user, token)
    trace = {"id": str(uuid.uuid4()), "correlation": "test", "causation": "test"}
    body = {"type": "heliograph.device-command", "version": 1, "trace": trace, "app": APP,
            "command": {"verb": "tag", "user": user, "tag": tag}}
    with stack.channel() as channel:
        channel.basic_publish("devices", f"command.tag.{APP}", json.dumps(body).encode(), mandatory=True)
    # The queue is processed in order, so a later command proves that the tag is set.
    eventually(lambda: stack.depth(f"token-registry.devices.app.{APP}") == 0 and tagged(stack, tag), what="the tag")
    event = by_pushctl(stack, {"tag": tag, "content": {"body": "For a segment"}})
    eventually(lambda: pushes(stack, token), what="the push of the campaign")
    assert decisions(stack, event) == [f"(tag {tag}) direct-tag push audience"]


def test_refused_data_is_dead_lettered_with_its_reason(stack):
    wrong = {"no-content": {"users": ["1"]}, "lane": {"users": ["1"], "content": {"body": "B"}, "lane": "fast"},
             "type": {"users": ["1"], "content": {"body": "B"}, "type": "no-such-type"}}
    for name, data in wrong.items():
        publish(stack, data, f"wrong-{name}")
    all_is_handled(stack, APP)
    queue = f"rules.events.app.{APP}"
    shown = pushctl(stack, "dead", "show", queue).stdout
    assert "content is missing" in shown and "lane is refused: expected one of interactive, bulk" in shown
    assert "choose one of chat" in shown and "no-such-type" not in shown
    for name in wrong:
        assert pushctl(stack, "dead", "drop", queue, "--id", f"wrong-{name}", "--yes").returncode == 0
    refused = pushctl(stack, "send", "--app", APP, "--user", "1", "--title", "T", "--lane", "fast")
    assert refused.returncode == 64 and "expected one of interactive, bulk" in refused.stderr


def test_a_test_push_prints_the_providers_answer(stack, phones):
    user, token = f"tested-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    done = pushctl(stack, "test-device", "--app", APP, "--user", user)
    assert done.returncode == 0 and "accepted" in done.stdout, done
    silent = pushctl(stack, "test-device", "--app", APP, "--user", user, "--silent")
    assert silent.returncode == 0 and "direct-silent" in silent.stdout, silent
    assert [request["headers"]["apns-push-type"] for request in pushes(stack, token)] == ["alert", "background"]
    nobody = pushctl(stack, "test-device", "--app", APP, "--user", f"nobody-{user}")
    assert nobody.returncode == 1 and "no-device" in nobody.stdout, nobody


def tagged(stack, tag: str) -> bool:
    done = subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"tag={tag}"],
        input="SELECT count(*) FROM registry.membership WHERE kind = 'tag' AND name = :'tag'", capture_output=True, text=True, timeout=20,
        check=True)
    return done.stdout.strip() == "1"


def page_commands() -> list[str]:
    return re.findall(r"^    (pushctl (?:send|trigger) .+)$", PAGE.read_text(), re.M)


def test_the_page_has_commands():
    assert len(page_commands()) >= 5


@pytest.mark.parametrize("command", page_commands())
def test_commands_of_the_page(stack, command):
    done = pushctl(stack, *shlex.split(command)[1:])
    assert done.returncode == 0 and "published" in done.stdout, done


DOORS = [by_the_bus, by_pushctl, by_http]


def test_http_waits_for_the_decisions_and_a_repeated_key_notifies_nobody(stack, phones):
    user, token, key = f"http-{uuid.uuid4()}", uuid.uuid4().hex, f"key-{uuid.uuid4()}"
    phones(APP, user, token)
    data = {"users": [user], "content": {"body": "Once"}}
    first = post(stack, data, "?wait=30s", key)
    assert first["complete"] is True
    assert [n["outcomes"][0]["disposition"] for n in first["events"][0]["notifications"]] == ["accepted"]
    again = post(stack, data, "?wait=30s", key)
    assert again["events"][0]["id"] == first["events"][0]["id"]
    all_is_handled(stack, APP)
    assert len(pushes(stack, token)) == 1
