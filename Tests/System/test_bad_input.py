"""Invalid input: each gets a clear reason, is visible, and does not affect valid input."""

import base64
import hmac
import json
import pathlib
import subprocess
import time
import uuid

import pytest

from local_stack import cloud_event, eventually

TYPE = "chat.message.created"
KEY = f"family-portal.{TYPE}"
QUEUE = "rules.events.app.family-portal"
DEAD = f"{QUEUE}.dead"
GOOD = {
    "message": {"id": 1, "text": "hello", "thread_id": None},
    "sender": {"id": "writer", "name": "Pat"},
    "participants": ["writer", "reader"],
}


def event(**changes) -> bytes:
    members = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/s", "type": TYPE, "data": GOOD} | changes
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


BAD_EVENTS = {
    "not JSON": (b"hello", "not-json"),
    "5,000 levels": (b"[" * 5000 + b"]" * 5000, "too-deep"),
    "1 MB": (b'"' + b"a" * (1 << 20) + b'"', "too-large"),
    "not UTF-8": (b'{"specversion":"1.0","id":"\xff"}', "not-utf8"),
    "wrong specversion": (event(specversion="0.3"), "invalid-field"),
    "no id": (event(id=...), "missing-field"),
    "no type": (event(type=...), "missing-field"),
    "no source": (event(source=...), "missing-field"),
    "a field that the rule needs is missing": (event(data={"participants": ["reader"], "sender": {"id": 1}}), None),
}


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_an_invalid_event_is_dead_lettered_with_its_reason_and_others_are_processed(stack, phones, name):
    body, code = BAD_EVENTS[name]
    token = uuid.uuid4().hex
    phones("family-portal", "reader", token)
    stack.take(DEAD)
    with stack.channel() as channel:
        for each in (event(), body, event()):
            channel.basic_publish("events", KEY, each)
    eventually(lambda: len([r for r in stack.requests("apns") if r.get("token") == token]) == 2, what="the neighbours")
    (dead,) = eventually(lambda: stack.take(DEAD), what="the dead letter")
    properties, kept = dead
    # A body above the limit is discarded while it is received.
    assert kept == (b"" if code == "too-large" else body)
    assert properties.headers["heliograph-detail"]
    assert properties.headers["heliograph-queue"] == QUEUE
    if code:
        assert properties.headers["heliograph-reason"] == code


def test_an_unknown_event_type_is_counted_and_not_dead_lettered(stack):
    def discarded() -> float:
        _, metrics = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('rules')}/metrics")
        lines = [line for line in metrics.splitlines() if "unknown-type" in line and not line.startswith("#")]
        return sum(float(line.split()[-1]) for line in lines)

    before = discarded()
    stack.publish("family-portal.photo.added", cloud_event("photo.added", {}, str(uuid.uuid4())))
    eventually(lambda: discarded() == before + 1, what="the count of unknown types")
    assert stack.depth(DEAD) == 0


@pytest.mark.parametrize("text", [
    "'; DROP TABLE registry.registration; --", "{{sender.id}} {{#x}}", "%s %n \\u0000", '"}],"aps":{', "$(reboot) `id`",
    "<b>&amp;</b>", "‮𝕌nicode 👩‍👩‍👧 ﷽",
])
def test_metacharacters_arrive_unchanged(stack, phones, text):
    token = uuid.uuid4().hex
    phones("family-portal", text, token)
    data = {"message": {"id": text, "text": text, "thread_id": text}, "sender": {"id": text + "!", "name": text},
            "participants": [text]}
    body = event(id=f"{uuid.uuid4()} {text}", source=f"/{text}", subject=text, data=data)
    stack.publish(KEY, body, content_type="application/cloudevents+json")
    (request,) = eventually(lambda: [r for r in stack.requests("apns") if r.get("token") == token], what="the push")
    assert request["body"]["aps"]["alert"]["body"] == f"{text}: {text}"
    assert request["body"]["data"]["message_id"] == text


def url(stack, verb="register") -> str:
    return f"{stack.env['REGISTRY_URL']}/api/notifications/push/{verb}"


BODY = {"token": "ab" * 16, "platform": "ios", "environment": "production"}


@pytest.mark.parametrize("changes, word", [
    ({"token": "not hex"}, "token"), ({"token": "abc"}, "token"), ({"token": ""}, "token"), ({"token": None}, "token"),
    ({"token": 7}, "token"), ({"platform": "windows"}, "platform"), ({"environment": "staging"}, "environment"),
    ({"token": "'; DROP TABLE registry.registration; --"}, "token"),
])
@pytest.mark.parametrize("verb", ["register", "unregister"])
def test_a_bad_registration_is_a_400_that_names_the_member(stack, verb, changes, word):
    bearer = stack.bearer("family-portal", "reader")
    status, answer = stack.http("POST", url(stack, verb), BODY | changes, {"Authorization": f"Bearer {bearer}"})
    assert status == 400 and answer["success"] is False and word in answer["error"]


def test_a_registration_that_is_too_large_is_a_413(stack):
    bearer = stack.bearer("family-portal", "reader")
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    status, answer = stack.http("POST", url(stack), raw=b'{"token":"' + b"ab" * 10_000 + b'"}', headers=headers)
    assert status == 413 and answer["success"] is False


@pytest.mark.parametrize("header", [None, "", "Basic abc", "Bearer", "Bearer x", "Bearer a.b.c"])
def test_a_registration_without_a_valid_token_is_a_401(stack, header):
    status, answer = stack.http("POST", url(stack), BODY, {} if header is None else {"Authorization": header})
    assert status == 401 and answer["success"] is False and answer["error"]


def test_expired_unsigned_and_tampered_tokens_are_401s(stack):
    good = stack.bearer("family-portal", "reader")
    expired = stack.bearer("family-portal", "reader", "--expires-in", "-3600")
    head, claims, signature = good.split(".")
    none = "eyJhbGciOiJub25lIn0." + claims + "."
    for bearer in (expired, f"{head}.{claims}.{signature[:-4]}AAAA", f"{head}.{claims}x.{signature}", none):
        status, answer = stack.http("POST", url(stack), BODY, {"Authorization": f"Bearer {bearer}"})
        assert status == 401 and answer["success"] is False


def signed(stack, claims: dict, secret: bytes | None = None) -> str:
    """A token signed like one of the app's own backend, or with another secret."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    if secret is None:
        secret = pathlib.Path(stack.env["BEARER_SECRET_FILE"]).read_bytes().strip()
    text = part(b'{"alg":"HS256","typ":"JWT"}') + "." + part(json.dumps(claims).encode())
    return text + "." + part(hmac.digest(secret, text.encode(), "sha256"))


def test_a_token_for_another_audience_is_a_401_and_a_valid_one_is_accepted(stack):
    claims = {"sub": "reader", "iss": "heliograph-development", "aud": "family-portal", "exp": int(time.time()) + 600}
    foreign = [
        signed(stack, claims | {"iss": "elsewhere"}), signed(stack, claims | {"aud": "another-app"}),
        signed(stack, claims | {"nbf": int(time.time()) + 600}), signed(stack, claims, secret=b"x" * 48),
    ]
    for bearer in foreign:
        status, answer = stack.http("POST", url(stack), BODY, {"Authorization": f"Bearer {bearer}"})
        assert status == 401 and answer["success"] is False
    status, _ = stack.http("POST", url(stack), BODY, {"Authorization": f"Bearer {signed(stack, claims)}"})
    assert status == 200


def test_a_typo_in_a_rule_file_stops_the_start_with_file_line_and_key(stack, tmp_path):
    rules = (stack.product("rules").parents[2] / "Services/Rules/RuleSets/family-portal.yaml").read_text()
    (tmp_path / "family-portal.yaml").write_text(rules.replace("category:", "categroy:"))
    line = next(i for i, text in enumerate(rules.splitlines(), 1) if "category:" in text)
    started = time.monotonic()
    done = subprocess.run(
        [stack.product("rules")],
        env={"RULES_DIRECTORY": str(tmp_path), "HELIOGRAPH_APPS": stack.env["HELIOGRAPH_APPS"],
             "AMQP_URL": stack.env["AMQP_URL"], "DATABASE_URL": stack.env["DATABASE_URL"], "HELIOGRAPH_ADMIN_PORT": "0"},
        capture_output=True, text=True, timeout=30,
    )
    assert done.returncode != 0 and time.monotonic() - started < 20
    assert f"family-portal.yaml:{line}" in done.stderr and "categroy" in done.stderr
