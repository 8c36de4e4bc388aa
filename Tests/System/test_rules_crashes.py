"""Kills rules twenty times during all of its work: nothing is lost, and no cap or digest counts twice."""

import concurrent.futures
import datetime
import json
import random
import time
import uuid

import pika
from large_groups import OF_NAMED, TO_STAFF, LargeGroups
from local_stack import cloud_event, eventually
from test_products import sql

DEATHS = 20
# The number of kills between the decision and the publish of a fan-out step.
KILLS_BETWEEN_STEPS = 4
ROUND = 40
PREFETCH = 500


def test_twenty_kills_lose_nothing_and_count_no_cap_twice(stack, phones):
    run = uuid.uuid4().hex[:8]
    with LargeGroups(stack, run) as groups:
        kill_rules(stack, phones, run, groups)


def kill_rules(stack, phones, run: str, groups: LargeGroups):
    stack.forget_requests()
    now = datetime.datetime.now(datetime.timezone.utc)
    due = (now + datetime.timedelta(seconds=150)).replace(second=0, microsecond=0)
    clock = due.strftime("%H:%M")

    def person(app: str, name: str, platform: str, **settings) -> str:
        user = f"{name}-{run}"
        phones(app, user, uuid.uuid5(uuid.NAMESPACE_OID, user).hex * 2 if platform == "ios" else f"{user}:fcm",
               platform=platform)
        if settings:
            sql(stack, "INSERT INTO rules.person (app, user_id, settings) "
                       f"VALUES ('{app}', '{user}', '{json.dumps(settings)}')")
        return user

    quiet = {"start": (due - datetime.timedelta(hours=3)).strftime("%H:%M"), "end": clock}
    reader = person("family-portal", "reader", "ios")
    players = [person("baolife", f"player{number}", "ios") for number in range(3)]
    sleeper = person("monolite-hr", "sleeper", "android", zone="UTC", quiet_hours=quiet)
    managers = [person("monolite-hr", f"manager{number}", "android", zone="UTC", digest_time=clock) for number in range(3)]

    published: dict[str, int] = {"chat": 0, "life": 0, "held": 0, "digest": 0}

    def publish(channel, key: str, data: dict, kind: str) -> None:
        app, type = key.split("/")
        id = f"{run}-{kind}-{published[kind]}"
        channel.basic_publish(
            "events", f"{app}.{type}", cloud_event(type, data, id),
            pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2), mandatory=True)
        published[kind] += 1

    def load(channel) -> None:
        for number in range(ROUND):
            publish(channel, "family-portal/chat.message.created", {
                "message": {"id": f"{run}-{published['chat']}", "text": "x", "thread_id": None},
                "sender": {"id": "s", "name": "S"}, "participants": [reader]}, "chat")
            if number % 4 == 0:
                publish(channel, "baolife/achievement.unlocked", {
                    "player": {"id": players[published["life"] % 3]}, "achievement": {"id": "a", "name": "A"}}, "life")
        # Scheduled notifications are published early enough to be decided before they are due.
        if datetime.datetime.now(datetime.timezone.utc) < due - datetime.timedelta(seconds=30):
            for number in range(6):
                publish(channel, "monolite-hr/request.approved", {
                    "request": {"id": f"h-{published['held']}", "kind": "k", "from": "2026-07-01", "until": "2026-07-02"},
                    "worker": {"id": sleeper}}, "held")
                publish(channel, "monolite-hr/request.submitted", {
                    "request": {"id": f"{run}-{published['digest']}", "kind": "k"}, "worker": {"id": "w", "name": "W"},
                    "manager": {"id": managers[published["digest"] % 3]}}, "digest")

    def load_once() -> None:
        with stack.channel() as channel:
            load(channel)

    chance = random.Random(7)
    with concurrent.futures.ThreadPoolExecutor(1) as publisher:
        for death in range(DEATHS):
            if death < OF_NAMED:
                groups.address_players()
            if death < TO_STAFF:
                groups.address_staff()
            # Every other kill happens during work, the others during startup.
            if death % 2:
                stack.service("ready", "rules")
            loading = publisher.submit(load_once)
            # At a random time within the round, which takes longer.
            time.sleep(chance.uniform(0, 0.2))
            stack.service("kill", "rules")
            groups.record_state()
            loading.result(timeout=60)
            stack.service("start", "rules")
    for _ in range(KILLS_BETWEEN_STEPS):
        groups.kill_between_decision_and_publish()
    # The last kills happen while notifications fall due.
    while datetime.datetime.now(datetime.timezone.utc) < due:
        time.sleep(0.2)
    for _ in range(3):
        stack.service("kill", "rules")
        stack.service("start", "rules")

    total = sum(published.values()) + groups.events
    eventually(lambda: sql(stack, f"SELECT count(*) FROM rules.event WHERE id LIKE '{run}-%'") == str(total), 120,
               "every event to be decided")
    # Held notifications are released over ten minutes; the rest is made due now.
    eventually(lambda: sql(
        stack, "WITH pulled AS (UPDATE rules.held SET due_at = now() WHERE leaving IS NULL AND user_id LIKE "
               f"'%-{run}' AND due_at > now() RETURNING 1) SELECT count(*) FROM rules.held WHERE user_id LIKE '%-{run}'"
    ) == "0", 180, "everything that waits to leave")

    eventually(lambda: len({r["body"]["data"]["message_id"] for r in stack.requests("apns")
                            if r.get("token") == token(reader)}) == published["chat"], 120, "every chat message")
    deaths = DEATHS + KILLS_BETWEEN_STEPS + 3
    chats = [r["body"]["data"]["message_id"] for r in stack.requests("apns") if r.get("token") == token(reader)]
    extra = len(chats) - published["chat"]
    assert extra <= deaths * PREFETCH

    for player in players:
        happened = sum(1 for number in range(published["life"]) if players[number % 3] == player)
        assert sql(stack, f"SELECT count(*) FROM rules.inbox WHERE user_id = '{player}'") == str(happened)
        assert sql(stack, f"SELECT count(*) FROM rules.decision WHERE user_id = '{player}' AND answer = 'push'") == "4"
        assert sql(stack, f"SELECT jsonb_array_length(logs -> 'hourly') FROM rules.person WHERE user_id = '{player}'") == "4"
        eventually(lambda player=player: len({r["headers"]["apns-id"] for r in stack.requests("apns")
                                              if r.get("token") == token(player)}) == 4, 60, "four pushes")

    eventually(lambda: len(notifications_sent(stack, sleeper)) == published["held"], 120, "every held notification")
    for number, manager in enumerate(managers):
        pending = sum(1 for event in range(published["digest"]) if event % 3 == number)
        eventually(lambda manager=manager: notifications_sent(stack, manager), 60, "the manager's digest")
        assert sql(stack, f"SELECT count(*) FROM rules.inbox WHERE user_id = '{manager}'") == "1", "one digest a day"
        counts = {r["body"]["message"]["data"]["count"] for r in stack.requests("fcm") if r.get("token") == f"{manager}:fcm"}
        assert counts == {str(pending)}
        assert len(notifications_sent(stack, manager)) == 1
    groups.check()
    assert groups.found["kills between decision and publish"] >= KILLS_BETWEEN_STEPS
    print(json.dumps({"kills": deaths, "events": total, "kinds": published, "repeated pushes": extra} | groups.found))


def token(user: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, user).hex * 2


def notifications_sent(stack, user: str) -> set[str]:
    """The notifications sent to a provider for a user."""
    rows = sql(stack, "SELECT DISTINCT notification FROM rules.outcome JOIN rules.decision USING (notification) "
                      f"WHERE user_id = '{user}' AND disposition = 'accepted'")
    return set(rows.split())
