"""Rules die twenty times while everything that they do is under way: nothing is lost, charged twice or summed up twice."""

import concurrent.futures
import datetime
import json
import random
import time
import uuid

import pika
from large_groups import OF_NAMED, TO_STAFF, Crowds
from local_stack import cloud_event, eventually
from test_products import sql

DEATHS = 20
# Of these many it is made sure that they fall between what is decided about a crowd and what is published.
DEATHS_OVER_STEPS = 4
ROUND = 40
PREFETCH = 500


def test_twenty_deaths_lose_nothing_and_charge_nobody_twice(stack, phones):
    run = uuid.uuid4().hex[:8]
    with Crowds(stack, run) as crowds:
        die(stack, phones, run, crowds)


def die(stack, phones, run: str, crowds: Crowds):
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
        # What waits is published early enough to be decided before it is due.
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
                crowds.address_players()
            if death < TO_STAFF:
                crowds.address_staff()
            # Every other one dies at work, the rest while they start.
            if death % 2:
                stack.service("ready", "rules")
            loading = publisher.submit(load_once)
            # Somewhere within the round, which takes longer than this.
            time.sleep(chance.uniform(0, 0.2))
            stack.service("kill", "rules")
            crowds.look()
            loading.result(timeout=60)
            stack.service("start", "rules")
    for _ in range(DEATHS_OVER_STEPS):
        crowds.die_over_a_step()
    # The last deaths fall into what is due.
    while datetime.datetime.now(datetime.timezone.utc) < due:
        time.sleep(0.2)
    for _ in range(3):
        stack.service("kill", "rules")
        stack.service("start", "rules")

    total = sum(published.values()) + crowds.events
    eventually(lambda: sql(stack, f"SELECT count(*) FROM rules.event WHERE id LIKE '{run}-%'") == str(total), 120,
               "every event to be decided")
    # The end of quiet hours is spread over ten minutes; what is left is made due now.
    eventually(lambda: sql(
        stack, "WITH pulled AS (UPDATE rules.held SET due_at = now() WHERE leaving IS NULL AND user_id LIKE "
               f"'%-{run}' AND due_at > now() RETURNING 1) SELECT count(*) FROM rules.held WHERE user_id LIKE '%-{run}'"
    ) == "0", 180, "everything that waits to leave")

    eventually(lambda: len({r["body"]["data"]["message_id"] for r in stack.requests("apns")
                            if r.get("token") == token(reader)}) == published["chat"], 120, "every chat message")
    deaths = DEATHS + DEATHS_OVER_STEPS + 3
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

    eventually(lambda: len(told(stack, sleeper)) == published["held"], 120, "everything that quiet hours held")
    for number, manager in enumerate(managers):
        pending = sum(1 for event in range(published["digest"]) if event % 3 == number)
        eventually(lambda manager=manager: told(stack, manager), 60, "the manager's summary")
        assert sql(stack, f"SELECT count(*) FROM rules.inbox WHERE user_id = '{manager}'") == "1", "one digest a day"
        counts = {r["body"]["message"]["data"]["count"] for r in stack.requests("fcm") if r.get("token") == f"{manager}:fcm"}
        assert counts == {str(pending)}
        assert len(told(stack, manager)) == 1
    crowds.check()
    assert crowds.found["deaths over a step"] >= DEATHS_OVER_STEPS
    print(json.dumps({"deaths": deaths, "events": total, "kinds": published, "repeated pushes": extra} | crowds.found))


def token(user: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, user).hex * 2


def told(stack, user: str) -> set[str]:
    """The notifications of which a provider was asked, by what stands for them."""
    rows = sql(stack, "SELECT DISTINCT notification FROM rules.outcome JOIN rules.decision USING (notification) "
                      f"WHERE user_id = '{user}' AND disposition = 'accepted'")
    return set(rows.split())
