"""Attacks by one user or app. Each test checks that other users of the running stack are not affected."""

import datetime
import json
import subprocess
import time
import uuid

import pytest
from local_stack import cloud_event, eventually
from test_products import Product, sql

UTC = datetime.timezone.utc


@pytest.fixture
def product(stack, phones):
    return lambda app, provider="apns": Product(stack, phones, app, provider)


def patch_preferences(stack, app: str, user: str, change: dict) -> int:
    """Sends PATCH /v1/preferences as that user and returns the status."""
    status, _ = stack.http(
        "PATCH", f"{stack.env['RULES_URL']}/v1/preferences", raw=json.dumps(change, ensure_ascii=False).encode(),
        headers={"Authorization": f"Bearer {stack.bearer(app, user)}", "Content-Type": "application/merge-patch+json"})
    return status


def quiet_until(moment: datetime.datetime) -> dict:
    """Quiet hours that started an hour ago and end at that minute."""
    start = datetime.datetime.now(UTC) - datetime.timedelta(hours=1)
    return {"start": start.strftime("%H:%M"), "end": moment.strftime("%H:%M")}


def message(portal: Product, sender: str, *participants: str) -> str:
    return portal.happen("chat.message.created", message={"id": 1, "text": "Hello", "thread_id": None},
                         sender={"id": sender, "name": "S"}, participants=[sender, *participants])


# B0: preferences that grow beyond the size limits

def huge_names() -> dict:
    """A mute whose name has 60,000 bytes and one visible character."""
    return {"mutes": {uuid.uuid4().hex[0] + "\u0301" * 29_000 + uuid.uuid4().hex: {"muted": True}}}


def test_oversized_preferences_of_one_user_block_no_other_user(stack, product):
    game, portal = product("baolife"), product("family-portal")
    attacker, victim, neighbour = game.person("attacker"), portal.person("victim"), portal.person("neighbour")
    end = datetime.datetime.now(UTC) + datetime.timedelta(hours=1)
    for app, user in ((game.app, attacker), (portal.app, victim)):
        assert patch_preferences(stack, app, user, {"quiet_hours": quiet_until(end), "zone": "Etc/UTC"}) == 200
    held = game.happen("achievement.unlocked", player={"id": attacker}, achievement={"id": "a", "name": "A"})
    late = message(portal, "sender", victim)
    assert game.decided(held, attacker).startswith("hold ")
    assert portal.decided(late, victim).startswith("hold ")

    for _ in range(5):
        patch_preferences(stack, game.app, attacker, huge_names())
    # Preferences like these may be stored by an earlier release.
    mutes = {f"{number}-" + "m" * 60_000: {"muted": True} for number in range(5)}
    stored = json.dumps({"quiet_hours": {"start": "00:00", "end": "00:01"}, "mutes": mutes}).replace("'", "''")
    (stack.state / "settings.sql").write_text(
        f"UPDATE rules.person SET settings = '{stored}' WHERE app = '{game.app}' AND user_id = '{attacker}'")
    subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", stack.env["DATABASE_URL"], "-f", stack.state / "settings.sql"],
                   capture_output=True, text=True, timeout=60, check=True)

    # The attacker and another user are recipients of one chat message.
    assert message(portal, "sender", neighbour)
    portal.got(neighbour, 1)
    shared = game.happen("achievement.unlocked", player={"id": [attacker, f"friend-{game.run}"]},
                         achievement={"id": "b", "name": "B"})
    assert game.decided(shared, f"friend-{game.run}").startswith("push ")
    # Held notifications are released over ten minutes. Both are made due now, and the victim's quiet hours are removed.
    assert patch_preferences(stack, portal.app, victim, {"quiet_hours": None}) == 200
    sql(stack, "UPDATE rules.held SET due_at = clock_timestamp() - interval '1 second' "
               f"WHERE user_id IN ('{attacker}', '{victim}')")
    portal.got(victim, 1, within=15)
    # The attacker can repair the preferences.
    assert patch_preferences(stack, game.app, attacker, {"mutes": None, "quiet_hours": None}) == 200


# B1: an event that can be stored but not read

def test_deeply_nested_events_of_one_app_block_no_fan_out(stack, product):
    portal, company = product("family-portal"), product("monolite-hr", "fcm")
    members_but_last = [f"m{number}-{company.run}" for number in range(1_099)]
    employee = company.person("last")
    joined = cloud_event("employee.hired", {"employee": {"id": [*members_but_last, employee]}}, f"{company.run}-hired")
    stack.publish("monolite-hr.employee.hired", joined, content_type="application/cloudevents+json", delivery_mode=2)
    members = f"SELECT count(*) FROM rules.member WHERE app = 'monolite-hr' AND user_id LIKE '%-{company.run}'"
    eventually(lambda: sql(stack, members) == "1100", 60, "the group")
    try:
        deep: list = []
        for _ in range(30):
            deep = [deep]
        body = {"message": {"id": 1, "text": "x", "thread_id": None}, "sender": {"id": "s", "name": "S"},
                "participants": [f"p{number}-{portal.run}" for number in range(1_100)], "x": deep}
        for number in range(3):
            stack.publish(
                "family-portal.chat.message.created", json.dumps(body).encode(), content_type="application/json",
                delivery_mode=2,
                headers={"cloudEvents:specversion": "1.0", "cloudEvents:id": f"{portal.run}-deep-{number}",
                         "cloudEvents:source": "/system-test", "cloudEvents:type": "chat.message.created"})
        news = cloud_event("announcement.published", {"announcement": {"id": "a", "title": "T", "text": "Text"}},
                           f"{company.run}-news")
        began = time.monotonic()
        stack.publish("monolite-hr.announcement.published", news, content_type="application/cloudevents+json",
                      delivery_mode=2)
        company.got(employee, 1, within=5)
        assert time.monotonic() - began < 5.5
    finally:
        left = cloud_event("employee.left", {"employee": {"id": [*members_but_last, employee]}}, f"{company.run}-left")
        stack.publish("monolite-hr.employee.left", left, content_type="application/cloudevents+json", delivery_mode=2)


# S2: invented tokens of one user

def route_is_open(stack) -> bool:
    status, text = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('apns-sender')}/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if line.startswith("heliograph_route_open{")
             and 'app="family-portal"' in line and 'environment="production"' in line]
    assert len(lines) == 1, lines
    return float(lines[0].split()[-1]) == 1


def test_invented_tokens_of_one_user_open_no_circuit_breaker(stack, product):
    portal = product("family-portal")
    attacker, victim = f"attacker-{portal.run}", portal.person("victim")
    bearer = stack.bearer(portal.app, attacker)
    invented = [uuid.uuid4().hex * 2 for _ in range(25)]
    for token in invented:
        status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes",
                                    {"provider": "apns", "token": token, "status": 400, "reason": "BadDeviceToken"})
        assert status in (200, 201, 204), answer
        assert stack.register(portal.app, attacker, token, bearer=bearer)[0] == 200
    message(portal, "sender", attacker)
    eventually(lambda: set(invented) <= {r["token"] for r in stack.requests("apns")}, 30, "the refusals")
    message(portal, "sender", victim)
    portal.got(victim, 1, within=10)
    assert route_is_open(stack)
