"""No log line contains a device token, a notification text or a bearer token."""

import base64
import json
import uuid

from local_stack import eventually

KEY = "family-portal.chat.message.created"
SERVICES = ("rules", "token-registry", "apns-sender", "fcm-sender", "feedback", "events-api", "webhook-sender",
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
