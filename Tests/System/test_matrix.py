"""The Matrix push gateway: a homeserver's request becomes a push, and a user without a device is rejected."""

import base64
import hashlib
import hmac
import uuid

from local_stack import eventually

APP = "family-portal"


def pushkey(stack, user: str, app: str = APP) -> str:
    """Signs a pushkey, as an app's backend does."""

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    key = (stack.state / "secrets" / "matrix").read_text().strip()
    signed = f"{app}.{encoded(user.encode())}"
    return f"{signed}.{encoded(hmac.digest(key.encode(), signed.encode(), hashlib.sha256))}"


def notify(stack, event: str, *pushkeys: str, **members):
    """Returns (status, answer) of a homeserver's request."""
    devices = [{"app_id": "com.example.chat.ios", "pushkey": key, "tweaks": {"sound": "default"}} for key in pushkeys]
    notification = {
        "event_id": event, "room_id": "!room:example.org", "type": "m.room.message", "sender_display_name": "Pat",
        "room_name": "Kitchen", "prio": "high", "content": {"msgtype": "m.text", "body": "Dinner is at seven."},
        "counts": {"unread": 3}, "devices": devices, **members}
    return stack.http("POST", f"{stack.env['EVENTS_API_URL']}/_matrix/push/v1/notify", {"notification": notification},
                      timeout=60)


def test_a_homeservers_request_is_pushed_once_and_a_user_without_a_device_is_rejected(stack):
    present, absent = (f"matrix-{uuid.uuid4().hex[:8]}" for _ in range(2))
    assert stack.register(APP, present, uuid.uuid4().hex * 2)[0] == 200
    event = f"${uuid.uuid4().hex}"

    def pushes() -> list[dict]:
        # Requests of channel management have no body.
        bodies = [one["body"] or {} for one in stack.requests("apns")]
        return [body for body in bodies if body.get("data", {}).get("event_id") == event]

    for _ in range(2):
        assert notify(stack, event, pushkey(stack, present)) == (200, {"rejected": []})
    eventually(pushes, 60, "the push")
    aps = pushes()[0]["aps"]
    assert aps["alert"] == {"title": "Kitchen", "body": "Pat: Dinner is at seven."}
    assert (aps["badge"], aps["sound"], aps["mutable-content"], aps["thread-id"]) == (3, "default", 1, "!room:example.org")

    # The answer contains the pushkey as soon as the registry has decided in time.
    gone = pushkey(stack, absent)

    def rejected() -> bool:
        status, answer = notify(stack, f"${uuid.uuid4().hex}", gone, pushkey(stack, present))
        assert status == 200, answer
        return answer == {"rejected": [gone]}

    eventually(rejected, 60, "the rejection")
    assert notify(stack, event, "an-apns-token")[0] == 403
    assert len(pushes()) == 1
