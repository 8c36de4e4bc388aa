"""Operators: the explanation of an event over HTTP, and a preview that equals the delivered payloads."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
import uuid

import pytest
from local_stack import ROOT, cloud_event, eventually

APP = "family-portal"


def pushctl(stack, *arguments: str, env: dict | None = None) -> str:
    done = subprocess.run([stack.product("pushctl"), *arguments], env={**stack.environment, **(env or stack.env)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def key(stack) -> str:
    return pushctl(stack, "keys", "create", "--service", "rules", "--name", "tests", "--app", APP, "--may",
                   "events:read").strip()


def message(id: str, users: list[str]) -> bytes:
    data = {
        "message": {"id": 1, "text": "Dinner? “Now” / später 🥗", "thread_id": 9},
        "sender": {"id": "nobody", "name": "Pat"}, "participants": users, "family": {"id": 7},
    }
    return cloud_event("chat.message.created", data, id)


def publish(stack, event: bytes) -> None:
    stack.publish(f"{APP}.chat.message.created", event, content_type="application/cloudevents+json")


def test_the_operator_api_and_pushctl_give_the_same_explanation(stack, phones, key):
    user, token = f"operators-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    event = f"operators/{uuid.uuid4()} ä"
    publish(stack, message(event, [user, f"without-a-phone-{user}"]))
    eventually(lambda: stack.is_answered(event), what="answers for everybody")
    url = f"{stack.env['RULES_URL']}/v1/operator/events/{urllib.parse.quote(event, safe='')}?app={APP}"
    status, answer = stack.http("GET", url, headers={"Authorization": f"Bearer {key}"})
    assert status == 200, answer
    stories = {story["user"]: story for story in answer["events"][0]["stories"]}
    printed = pushctl(stack, "explain", event, "--app", APP)
    assert [o["disposition"] for o in stories[user]["outcomes"]] == ["accepted"]
    assert [o["reason"] for o in stories[f"without-a-phone-{user}"]["outcomes"]] == ["no-device"]
    for story in stories.values():
        assert f"  {story['user']}  {story['rule']}  {story['notification']}" in printed
        for outcome in story["outcomes"]:
            assert outcome["disposition"] in printed and (outcome["reason"] or "") in printed
    status, _ = stack.http("GET", url, headers={"Authorization": f"Bearer {stack.env['REGISTRY_OPERATOR_KEY']}"})
    assert status == 401


def raw_requests(stack, provider: str) -> str:
    """The simulator's log as text, with request bodies byte for byte."""
    with urllib.request.urlopen(f"{stack.env['SIMULATOR_URL']}/{provider}/requests", timeout=10) as answer:
        return answer.read().decode()


def without_times(text: str) -> str:
    """Removes times that depend on the sender."""
    text = re.sub(r'"TTL":"\d+"', '"TTL":"…"', text)
    return re.sub(r'"ttl":"\d+s"', '"ttl":"…"', re.sub(r'"apns-expiration":"\d+"', '"apns-expiration":"…"', text))


def test_a_preview_equals_the_delivered_payload_byte_for_byte(stack, phones, tmp_path):
    user, apple, android = f"preview-{uuid.uuid4()}", uuid.uuid4().hex, f"{uuid.uuid4().hex}:fcm"
    phones(APP, user, apple)
    phones(APP, user, android, platform="android")
    event = message(f"preview-{uuid.uuid4()}", [user])
    (tmp_path / "events").write_bytes(event)
    shown = pushctl(
        stack, "rules", "preview", str(ROOT / "Services/Rules/RuleSets/family-portal.yaml"), "--events",
        str(tmp_path / "events"), "--apps", stack.env["HELIOGRAPH_APPS"]).splitlines()
    bodies = [line.strip() for line in shown if line.startswith("        {")]
    assert len(bodies) == 3 and '"web_push":8030' in bodies[2], shown
    assert shown[2].strip() == f"APNs (iOS, macOS, watchOS): {len(bodies[0].encode())} of 4096 bytes"

    publish(stack, event)
    for provider, token in [("apns", apple), ("fcm", android)]:
        eventually(lambda: [r for r in stack.requests(provider) if r.get("token") == token], what=f"a push by {provider}")
    assert f'"body":{bodies[0]},' in raw_requests(stack, "apns")
    fcm = without_times(bodies[1].replace("REGISTRATION-TOKEN", android))
    assert f'"body":{fcm},' in without_times(raw_requests(stack, "fcm"))

    headers = dict(part.split(": ") for part in shown[3].strip().split(", "))
    sent = next(r for r in stack.requests("apns") if r.get("token") == apple)["headers"]
    same = ["apns-push-type", "apns-topic", "apns-priority", "apns-collapse-id"]
    assert {name: sent[name] for name in same} == {name: headers[name] for name in same}
    assert json.loads(bodies[0])["aps"]["alert"]["body"].startswith("Pat: Dinner?")
