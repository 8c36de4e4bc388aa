"""No log line contains a device token, a notification text or a bearer token, and one query finds a notification in all logs."""

import base64
import json
import pathlib
import re
import subprocess
import uuid

import pytest

from local_stack import eventually, sql
from test_token_deactivation import script, states

KEY = "family-portal.chat.message.created"
SERVICES = ("rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback", "events-api", "webhook-sender",
            "provider-simulator")


def event(text: str, **changes) -> bytes:
    data = {"message": {"id": 1, "text": text, "thread_id": None}, "sender": {"id": "writer", "name": f"Pat {text}"},
            "participants": ["writer", "reader"]} | changes
    return json.dumps({"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/logs", "type": "chat.message.created",
                       "data": data}).encode()


def spellings(token: str) -> list[str]:
    """A token as it is, in upper case, and as base64 of its bytes."""
    return [token, token.upper(), base64.b64encode(bytes.fromhex(token)).decode()]


def test_no_log_holds_a_token_or_a_text(stack, phones):
    good, dead, unknown = (uuid.uuid4().hex for _ in range(3))
    text = f"secret text {uuid.uuid4()}"
    bearer = stack.bearer("family-portal", "reader")
    phones("family-portal", "reader", good)
    phones("family-portal", "reader", dead)
    status, answer = stack.http(
        "POST", f"{stack.env['SIMULATOR_URL']}/outcomes", {"provider": "apns", "token": dead, "status": 410,
                                                            "reason": "Unregistered"})
    assert status in (200, 201, 204), answer
    stack.take("rules.events.app.family-portal.dead")
    with stack.channel() as channel:
        # A delivered and a rejected push, a dead letter with the text, and a body that is not JSON.
        for body in (event(text), event(text, message={}), b"{" + text.encode() + unknown.encode()):
            channel.basic_publish("events", KEY, body)
    eventually(lambda: {good, dead} <= {r.get("token") for r in stack.requests("apns")}, what="both pushes")
    eventually(lambda: stack.depth("rules.events.app.family-portal.dead") >= 2, what="the dead letters")
    stack.take("rules.events.app.family-portal.dead")
    # Rejected requests: an invalid token, and a bearer token with a wrong signature.
    url = f"{stack.env['REGISTRY_URL']}/api/notifications/push/register"
    for body, word in (({"token": unknown + "x", "platform": "ios", "environment": "production"}, bearer),
                       ({"token": unknown, "platform": "ios", "environment": "production"}, bearer[:-4] + "AAAA")):
        status, _ = stack.http("POST", url, body, headers={"Authorization": f"Bearer {word}"})
        assert status in (400, 401)
    secrets = [text, bearer, bearer.rsplit(".", 1)[-1], stack.env["REGISTRY_OPERATOR_KEY"]]
    secrets += [spelling for token in (good, dead, unknown) for spelling in spellings(token)]
    for service in SERVICES:
        log = (stack.state / "log" / f"{service}.log").read_text()
        assert "Starting" in log, f"{service} logs elsewhere"
        for secret in secrets:
            assert secret not in log, f"{service}'s log holds {secret[:6]}…"


PAGE = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "operations" / "logs.md"
# Keys that only a line about one message has.
OF_MESSAGES = ("message_id", "causation", "notification", "notifications", "attempt", "exchange")


@pytest.fixture
def at_debug(stack):
    """The services log at `debug`, in JSON, until the end of the test."""
    def restart() -> None:
        stack.restart_all(*SERVICES)

    files = [stack.state / "environment" / service for service in SERVICES]
    files[0].parent.mkdir(exist_ok=True)
    for file in files:
        file.write_text("LOG_LEVEL=debug\nLOG_FORMAT=json\n")
    restart()
    yield
    for file in files:
        file.unlink()
    restart()


def lines_of(stack) -> list[dict]:
    """The JSON lines of all services."""
    lines = []
    for service in SERVICES:
        for line in (stack.state / "log" / f"{service}.log").read_text().splitlines():
            if line.startswith("{"):
                lines.append(json.loads(line))
    return lines


def found(stack, id: str) -> list[dict]:
    """The lines that the function on the page finds."""
    function = re.search(r"^    find_in_logs\(\) \{\n.*?^    \}$", PAGE.read_text(), re.M | re.S)[0]
    done = subprocess.run(["bash", "-c", f'{function}\ncat "$1"/log/*.log | find_in_logs "$2"', "-", stack.state, id],
                          capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def services(lines: list[dict]) -> set[str]:
    return {line["service"] for line in lines}


def test_one_query_finds_a_notification_in_the_logs_of_each_service(stack, phones, at_debug):
    user, off, good, dead = f"l-{uuid.uuid4()}", f"l-{uuid.uuid4()}", uuid.uuid4().hex, uuid.uuid4().hex
    for token in (good, dead):
        phones("family-portal", user, token)
    script(stack, provider="apns", token=dead, status=410, reason="Unregistered")
    sql(stack, "INSERT INTO rules.person (app, user_id, settings) "
               f"VALUES ('family-portal', '{off}', '{{\"enabled\": false}}')")
    code, output = stack.pushctl("keys", "create", "--service", "rules", "--name", "logs", "--app", "family-portal",
                                 "--may", "events:publish")
    assert code == 0, output
    key = re.search(r"hgk_\w+", output)[0]
    trace, text = uuid.uuid4().hex, f"secret text {uuid.uuid4()}"
    body = event(text, participants=["writer", user, off])
    id = json.loads(body)["id"]
    status, answer = stack.http(
        "POST", f"{stack.env['EVENTS_API_URL']}/v1/events", json.loads(body),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/cloudevents+json",
         "traceparent": f"00-{trace}-{uuid.uuid4().hex[:16]}-01"})
    assert status == 202, answer
    eventually(lambda: states(stack, user) == ["active", "invalidated"], 60, "the end of the dead registration")
    outcomes = ("SELECT count(*) FROM rules.outcome JOIN rules.decision d USING (notification) "
                "JOIN rules.event e ON e.key = d.event WHERE e.id = :'event'")
    eventually(lambda: sql(stack, outcomes, event=id) == "2", 60, "the outcomes of both phones")

    wanted = {"events-api", "rules", "token-registry", "apns-sender", "feedback"}
    eventually(lambda: services(found(stack, id)) == wanted, 60, "the event in the logs of each service that had it")
    of_event = found(stack, id)
    assert {line.get("trace_id") for line in of_event if line["service"] != "events-api"} <= {trace, None}
    refused = [line for line in of_event if line["service"] == "apns-sender" and line.get("reason") == "Unregistered"]
    assert len(refused) == 1 and refused[0]["trace_id"] == trace
    ended = [line for line in of_event if line["message"] == "Registration deactivated"]
    assert len(ended) == 1 and ended[0]["device"] == refused[0]["device"]

    query = ("SELECT notification FROM rules.decision d JOIN rules.event e ON e.key = d.event "
             "WHERE e.id = :'event' AND d.user_id = :'user'")
    pushed, dropped = (sql(stack, query, event=id, user=person) for person in (user, off))
    assert services(found(stack, pushed)) == {"rules", "token-registry", "apns-sender", "feedback"}
    assert [line["service"] for line in found(stack, dropped)] == ["rules"]

    # The shared queue may have messages of other tests, and these have an event too.
    lines = [line for line in lines_of(stack) if any(key in line for key in OF_MESSAGES)]
    assert len(lines) > len(of_event) > 8
    assert [line for line in lines if line.get("correlation", "-") == "-"] == []
    whole = json.dumps(lines_of(stack))
    assert not any(spelling in whole for token in (good, dead) for spelling in spellings(token))
    assert text not in whole
