"""Helpers of the tests about revocations."""

import datetime
import json
import re
import time
import urllib.request
import uuid

from local_stack import cloud_event, eventually, sql

APP = "family-portal"
TYPE = "chat.message.created"
DIRECT = "heliograph.notification.requested"
STAFF = 1_100


def publish(stack, app: str, type: str, data: dict, event: str | None = None) -> str:
    event = event or f"unsend-{uuid.uuid4()}"
    stack.publish(f"{app}.{type}", cloud_event(type, data, event), content_type="application/cloudevents+json")
    return event


def tell(stack, user: str, event: str | None = None) -> str:
    data = {"message": {"id": 1, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
            "participants": [user]}
    return publish(stack, APP, TYPE, data, event)


def is_decided(stack, event: str, answer: str) -> bool:
    return sql(stack, "SELECT count(*) > 0 FROM rules.decision JOIN rules.event ON event.key = decision.event "
                      "WHERE event.id = :'event' AND answer = :'answer'", event=event, answer=answer) == "t"


def decisions(stack, event: str) -> set[str]:
    """`answer reason` of each decision about an event."""
    return set(sql(stack, "SELECT answer || ' ' || reason FROM rules.decision JOIN rules.event "
                          "ON event.key = decision.event WHERE event.id = :'event'", event=event).splitlines())


def revoke(stack, *options: str, app: str = APP) -> dict:
    """Revokes with pushctl, waits until it is carried out, and returns the document."""
    code, output = stack.pushctl("revoke", "--app", app, *options, "--json")
    assert code == 0, output
    return json.loads(output)


def revoke_and_wait(stack, place: str, *options: str, app: str = APP) -> dict:
    """Revokes, and prints a row of the measured table: the seconds from the request until it is carried out."""
    revoke(stack, *options, app=app)
    done = eventually(lambda: (state := revoke(stack, *options, app=app))["ended_at"] and state, 30, "the revocation")
    begin, end = (datetime.datetime.fromisoformat(done[key].replace("Z", "+00:00"))
                  for key in ("requested_at", "ended_at"))
    print(f"gone | {place} | {(end - begin).total_seconds():.2f} s")
    return done


def survivors(stack, *tokens: str) -> list[dict]:
    """The requests for notifications on these phones. Corrections of a badge and clear commands are none."""
    def is_notification(provider: str, text: str) -> bool:
        return ("alert" in text or provider == "fcm") and "heliograph_clear" not in text
    return [request for provider in ("apns", "fcm") for request in stack.requests(provider)
            if request.get("token") in tokens and is_notification(provider, json.dumps(request["body"]))]


def clear_commands(stack, *tokens: str) -> list[dict]:
    """The requests with clear commands to these phones."""
    return [request for provider in ("apns", "fcm") for request in stack.requests(provider)
            if request.get("token") in tokens and "heliograph_clear" in json.dumps(request["body"])]


def person(stack, phones, app: str = APP, settings: dict | None = None, **options) -> tuple[str, str]:
    user, token = f"unsend-{uuid.uuid4()}", uuid.uuid4().hex
    phones(app, user, token, **options)
    if settings:
        sql(stack, "INSERT INTO rules.person (app, user_id, settings) VALUES (:'app', :'user', :'settings')",
            app=app, user=user, settings=json.dumps(settings))
    return user, token


def items(stack, bearer: str) -> list[str]:
    """The ids of the inbox. An item that arrives between the service's two reads is counted in the next answer."""
    def read() -> dict | None:
        status, answer = stack.http("GET", f"{stack.env['RULES_URL']}/v1/inbox",
                                    headers={"Authorization": f"Bearer {bearer}"})
        assert status == 200, answer
        return answer if answer["unread"] == len(answer["items"]) else None
    answer = eventually(read, 5, "an inbox whose items are all unread")
    return [item["id"] for item in answer["items"]]


class Stream:
    """The events of `/v1/inbox/stream`."""

    def __init__(self, stack, bearer: str, after: str = ""):
        headers = {"Authorization": f"Bearer {bearer}"} | ({"Last-Event-ID": after} if after else {})
        self.response = urllib.request.urlopen(
            urllib.request.Request(f"{stack.env['RULES_URL']}/v1/inbox/stream", headers=headers), timeout=30)

    def next(self) -> tuple[str, str, str]:
        """(kind, position, notification id) of the next event."""
        kind = position = ""
        deadline = time.monotonic() + 60
        # The server writes a comment every few seconds.
        for line in self.response:
            assert time.monotonic() < deadline, "the stream has no event for 60 s"
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            if name == "id":
                position = value
            if name == "data":
                return kind, position, json.loads(value)["id"]
        raise AssertionError("the stream has ended")


def operator_key(stack, app: str = APP) -> str:
    """An API key that may revoke."""
    code, output = stack.pushctl("keys", "create", "--service", "rules", "--name", "support desk", "--app", app,
                                 "--may", "notifications:revoke")
    assert code == 0, output
    return re.search(r"hgk_\w+", output)[0]


def post(stack, key: str, body: dict):
    return stack.http("POST", f"{stack.env['RULES_URL']}/v1/operator/revocations", body,
                      headers={"Authorization": f"Bearer {key}"})


def shown(stack, *tokens: str) -> list[str]:
    """The bodies of the notifications that these phones show, by provider and token."""
    bodies = []
    for token in tokens:
        for provider in ("apns", "fcm"):
            status, phone = stack.http("GET", f"{stack.env['SIMULATOR_URL']}/shown?provider={provider}&token={token}")
            assert status == 200, phone
            bodies += [note.get("body", "") for note in phone["shown"]]
    return bodies


def gone(stack, place: str, request, is_gone, timeout: float = 30) -> float:
    """The seconds from a revocation, which `request` asks for, until `is_gone`. Prints a row of the measured table."""
    start = time.monotonic()
    request()
    while not is_gone():
        assert time.monotonic() - start < timeout, f"{place}: not gone after {timeout} s"
        time.sleep(0.02)
    seconds = time.monotonic() - start
    print(f"gone | {place} | {seconds:.2f} s")
    return seconds
