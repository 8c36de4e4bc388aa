"""A spike of bad tokens is quarantined and reported; registrations end only after an operator's release.

A spike is a share of the responses of one route in two minutes. Only these tests use the route
`family-portal/apns/development`.
"""

import os
import re
import subprocess
import time
import uuid

import pytest
from local_stack import cloud_event, eventually, sql

TYPE = "chat.message.created"


@pytest.fixture
def quarantine(stack):
    """pushctl feedback quarantine with the service's database login. Empties the quarantine before and after the test.
    """

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [stack.product("pushctl"), "feedback", "quarantine", *arguments],
            env=dict(os.environ, DATABASE_URL=stack.env["DATABASE_URL"]),
            capture_output=True, text=True, timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("discard", "--all")
    yield run
    run("discard", "--all")


def later() -> int:
    """A timestamp newer than every registration."""
    return int(time.time() * 1000) + 3_600_000


def script(stack, **outcome) -> None:
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", outcome)
    assert status in (200, 201, 204), answer


def devices(stack, app: str, user: str) -> list[dict]:
    status, answer = stack.http(
        "GET", f"{stack.env['REGISTRY_URL']}/v1/operator/devices?app={app}&user={user}",
        headers={"Authorization": f"Bearer {stack.env['REGISTRY_OPERATOR_KEY']}"})
    assert status == 200, answer
    return answer["devices"]


def states(stack, users: list[str]) -> dict[str, int]:
    """The number of registrations of these users by state."""
    names = ", ".join(f"'{user}'" for user in users)
    rows = sql(stack, "SELECT state, count(*) FROM registry.registration WHERE app = 'family-portal' "
                      f"AND user_id IN ({names}) GROUP BY state")
    return {state: int(count) for state, count in (row.split("|") for row in rows.splitlines())}


def tell(stack, users: list[str]) -> None:
    event = str(uuid.uuid4())
    data = {"message": {"id": event, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
            "participants": users}
    stack.publish(f"family-portal.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")


def people(stack, count: int) -> dict[str, str]:
    """Tokens by user. The registrations are made two days old: only those count as evidence of a spike."""
    run = uuid.uuid4().hex
    tokens = {f"u-{number}-{run}": uuid.uuid4().hex for number in range(count)}
    for user, token in tokens.items():
        register(stack, user, token)
    sql(stack, "UPDATE registry.registration SET state_changed_at = state_changed_at - interval '2 days' "
               f"WHERE app = 'family-portal' AND user_id LIKE 'u-%-{run}'")
    return tokens


def register(stack, user: str, token: str) -> None:
    status, answer = stack.register("family-portal", user, token, environment="development")
    assert status == 200, answer


def readiness(stack) -> tuple[int, str]:
    status, answer = stack.http("GET", stack.env["FEEDBACK_URL"] + "/health/ready")
    return status, str(answer)


def test_thirty_of_a_hundred_are_quarantined_and_released(stack, phones, quarantine):
    tokens = people(stack, 100)
    users = list(tokens)
    for token in list(tokens.values())[:30]:
        script(stack, provider="apns", token=token, status=410, reason="Unregistered", timestamp=later())
    tell(stack, users)
    eventually(lambda: "30 registrations are quarantined" in quarantine("list", "--app", "family-portal"),
               what="the quarantine")
    listed = quarantine("list", "--app", "family-portal")
    assert "Unregistered" in listed and "(storm)" in listed
    tripped = re.search(r"guard tripped  family-portal/apns/development .* (\d+) of (\d+) responses were rejections", listed)
    assert tripped and int(tripped[1]) >= 30 and int(tripped[2]) >= 100
    # Once a token of another route is deactivated, these would have been too: none has changed.
    other = f"u-{uuid.uuid4()}"
    phones("family-portal", other, f"fcm:{other}", platform="android")
    script(stack, provider="fcm", token=f"fcm:{other}", status=404, error_code="UNREGISTERED", count=1)
    tell(stack, [other])
    eventually(lambda: states(stack, [other]) == {"invalidated": 1}, what="the other lane's retirement")
    assert states(stack, users) == {"active": 100}
    status, words = readiness(stack)
    assert status == 200 and "quarantined" in words

    one = listed.splitlines()[2].split()[0]
    assert "Unregistered" in quarantine("show", one)
    assert "released 1 " in quarantine("release", one)
    eventually(lambda: states(stack, users) == {"active": 99, "invalidated": 1}, what="one release")
    assert "released 29 " in quarantine("release", "--all", "--app", "family-portal")
    assert "released 0 " in quarantine("release", "--all", "--app", "family-portal")
    eventually(lambda: states(stack, users) == {"active": 70, "invalidated": 30}, what="the release")
    assert "nothing is quarantined" in quarantine("list")
    eventually(lambda: "quarantined" not in readiness(stack)[1], what="the guard at rest")


def test_a_release_keeps_renewed_registrations(stack, phones, quarantine):
    tokens = people(stack, 40)
    users = list(tokens)
    for token in tokens.values():
        script(stack, provider="apns", token=token, status=410, reason="Unregistered", count=1,
               timestamp=int(time.time() * 1000))
    tell(stack, users)
    eventually(lambda: "40 registrations are quarantined" in quarantine("list"), what="the quarantine")
    for user in users[:10]:
        register(stack, user, tokens[user])
    quarantine("release", "--all")
    eventually(lambda: states(stack, users) == {"active": 10, "invalidated": 30}, what="the release")


def test_a_discarded_spike_keeps_every_registration(stack, phones, quarantine):
    tokens = people(stack, 25)
    users = list(tokens)
    for token in tokens.values():
        script(stack, provider="apns", token=token, status=410, reason="Unregistered", timestamp=later(), count=1)
    tell(stack, users)
    eventually(lambda: "25 registrations are quarantined" in quarantine("list"), what="the quarantine")
    assert "discarded the evidence against 25" in quarantine("discard", "--all", "--app", "family-portal")
    assert states(stack, users) == {"active": 25}
    stack.forget_requests()
    tell(stack, users)
    eventually(lambda: len([r for r in stack.requests("apns") if r["token"] in tokens.values()]) == 25, what="the next push")


def test_a_token_of_the_other_environment_is_pushed_there_and_moved(stack, phones, quarantine):
    user, token = f"u-{uuid.uuid4()}", uuid.uuid4().hex
    phones("family-portal", user, token, environment="production")
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/tokens", {
        "provider": "apns", "token": token, "environment": "development"})
    assert status in (200, 201, 204), answer
    tell(stack, [user])

    def moved():
        return {device["environment"]: device["state"] for device in devices(stack, "family-portal", user)} == {
            "production": "replaced", "development": "active"}

    eventually(moved, what="the move")
    tried = [(r["environment"], r["status"]) for r in stack.requests("apns") if r.get("token") == token]
    assert tried == [("production", 400), ("development", 200)]
    tell(stack, [user])
    eventually(lambda: len([r for r in stack.requests("apns") if r.get("token") == token]) == 3, what="the next push")
    assert [r["environment"] for r in stack.requests("apns") if r.get("token") == token][-1] == "development"
    assert "nothing is quarantined" in quarantine("list")


def route_is_open(stack) -> bool:
    """Whether the sender's circuit breaker for the route of these tests is closed, by its metric."""
    status, text = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('apns-sender')}/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line.startswith("heliograph_route_open{")
             and 'app="family-portal"' in line and 'environment="development"' in line]
    assert len(lines) == 1, lines
    return float(lines[0].split()[-1]) == 1


def test_valid_tokens_refused_by_a_faulty_route_stay_registered(stack, phones, quarantine):
    """40 of 100 tokens: 19 are reported before the sender pauses the route, too few for feedback's own guard."""
    before, after = people(stack, 50), people(stack, 50)
    refused = [*list(before.values())[:19], *list(after.values())[:21]]
    for token in refused:
        script(stack, provider="apns", token=token, status=400, reason="BadDeviceToken")
    stack.forget_requests()
    queues = ["apns-sender.pushes.interactive.family-portal", "feedback.outcomes", "rules.outcomes"]
    given_up = [stack.depth(f"{queue}.dead") for queue in queues]

    def answers(group: dict[str, str], status: int) -> set[str]:
        return {r["token"] for r in stack.requests("apns")
                if r["token"] in group.values() and r["status"] == status and r["environment"] == "development"}

    # Feedback processes everything at once after its start, independent of this machine's speed.
    stack.service("stop", "feedback")
    try:
        tell(stack, list(before))
        eventually(lambda: len(answers(before, 200)) == 31 and len(answers(before, 400)) == 19, what="the first push")
        tell(stack, list(after))
        eventually(lambda: not route_is_open(stack), what="the halt")
    finally:
        stack.service("start", "feedback")
    eventually(lambda: "19 registrations are quarantined" in quarantine("list", "--app", "family-portal"),
               what="the quarantine")
    listed = quarantine("list", "--app", "family-portal")
    assert "guard tripped  family-portal/apns/development" in listed
    assert listed.count("BadDeviceToken") == 19 and "(storm)" in listed

    status, answer = stack.http("DELETE", f"{stack.env['SIMULATOR_URL']}/outcomes")
    assert status in (200, 204), answer
    # No push was rejected meanwhile: the route resumes, and the waiting pushes are sent.
    eventually(lambda: len(answers(after, 200)) == 50, 300, "the pushes that were held")
    eventually(lambda: route_is_open(stack), what="the lane")
    assert answers(before, 400) == set(refused[:19])
    assert [stack.depth(f"{queue}.dead") for queue in queues] == given_up
    assert all(states(stack, list(group)) == {"active": 50} for group in (before, after))
    assert "19 registrations are quarantined" in quarantine("list", "--app", "family-portal")
