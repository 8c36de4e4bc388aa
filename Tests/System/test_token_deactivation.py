"""An unregistered token deactivates its registration only, and only if the provider's timestamp is newer."""

import time
import uuid

from local_stack import cloud_event, eventually
from sentinels import all_is_handled

TYPE = "chat.message.created"


def script(stack, **outcome) -> None:
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", outcome)
    assert status in (200, 201, 204), answer


def devices(stack, user: str) -> list[dict]:
    status, answer = stack.http(
        "GET", f"{stack.env['REGISTRY_URL']}/v1/operator/devices?app=family-portal&user={user}",
        headers={"Authorization": f"Bearer {stack.env['REGISTRY_OPERATOR_KEY']}"})
    assert status == 200, answer
    return answer["devices"]


def states(stack, user: str) -> list[str]:
    return sorted(device["state"] for device in devices(stack, user))


def tell(stack, user: str, thread: int | None = None) -> str:
    event = str(uuid.uuid4())
    data = {"message": {"id": event, "text": "x", "thread_id": thread}, "sender": {"id": "w", "name": "P"},
            "participants": [user]}
    stack.publish(f"family-portal.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")
    return event


def requests_of(stack, token: str, provider="apns") -> list[dict]:
    return [request for request in stack.requests(provider) if request.get("token") == token]


def test_apns_410_deactivates_that_registration_only(stack, phones):
    user, dead, alive = f"u-{uuid.uuid4()}", uuid.uuid4().hex, uuid.uuid4().hex
    phones("family-portal", user, dead)
    phones("family-portal", user, alive)
    script(stack, provider="apns", token=dead, status=410, reason="Unregistered", timestamp=int(time.time() * 1000) + 1000)
    tell(stack, user)
    eventually(lambda: states(stack, user) == ["active", "invalidated"], what="the retirement")
    tell(stack, user)
    eventually(lambda: len(requests_of(stack, alive)) == 2, what="the second push")
    assert len(requests_of(stack, dead)) == 1


def test_a_registration_newer_than_the_410_timestamp_is_kept(stack, phones):
    user, token = f"u-{uuid.uuid4()}", uuid.uuid4().hex
    phones("family-portal", user, token)
    script(stack, provider="apns", token=token, status=410, reason="Unregistered",
           timestamp=int(time.time() * 1000) - 3_600_000, count=1)
    tell(stack, user)
    eventually(lambda: len(requests_of(stack, token)) == 1, what="the refused push")
    # The next push arrives only if the registration is still active after the command was processed.
    eventually(lambda: stack.depth("feedback.outcomes") == 0 and stack.depth("token-registry.devices.app.family-portal") == 0)
    tell(stack, user)
    eventually(lambda: len(requests_of(stack, token)) == 2, what="the push after")
    assert states(stack, user) == ["active"]


def test_fcm_unregistered_deactivates_and_a_later_registration_reactivates(stack, phones):
    user, token = f"u-{uuid.uuid4()}", f"fcm:{uuid.uuid4().hex}"
    phones("family-portal", user, token, platform="android")
    script(stack, provider="fcm", token=token, status=404, error_code="UNREGISTERED", count=1)
    tell(stack, user)
    eventually(lambda: states(stack, user) == ["invalidated"], what="the retirement")
    phones("family-portal", user, token, platform="android")
    assert states(stack, user) == ["active"]
    tell(stack, user)
    eventually(lambda: [r for r in requests_of(stack, token, "fcm") if r["status"] == 200], what="the push after")


def test_a_token_registered_by_another_user_moves_to_that_user(stack, phones):
    first, second, token = f"a-{uuid.uuid4()}", f"b-{uuid.uuid4()}", uuid.uuid4().hex
    phones("family-portal", first, token)
    phones("family-portal", second, token)
    assert states(stack, first) == []
    tell(stack, first)
    event = tell(stack, second)
    eventually(lambda: requests_of(stack, token), what="the new owner's push")
    all_is_handled(stack, "family-portal")
    assert [r["body"]["data"]["message_id"] for r in requests_of(stack, token)] == [event]


def test_an_unregistered_device_gets_no_more_pushes(stack, phones):
    user, token, other = f"u-{uuid.uuid4()}", uuid.uuid4().hex, uuid.uuid4().hex
    phones("family-portal", user, token)
    phones("family-portal", user, other)
    phones("family-portal", user, token, verb="unregister")
    assert states(stack, user) == ["active", "signed-out"]
    tell(stack, user)
    eventually(lambda: requests_of(stack, other), what="the other device's push")
    all_is_handled(stack, "family-portal")
    assert requests_of(stack, token) == []
