"""The five example apps: publishes events with pika, and checks pushes and inboxes."""

import collections
import datetime
import functools
import json
import time
import uuid

import pytest

import local_stack
from local_stack import cloud_event, eventually
from sentinels import all_is_handled

# Statements over many rows.
sql = functools.partial(local_stack.sql, timeout=60)


class Product:
    """One app with its events, phones and inboxes."""

    def __init__(self, stack, phones, app: str, provider: str):
        self.stack, self.phones, self.app, self.provider = stack, phones, app, provider
        self.run = uuid.uuid4().hex[:8]
        self.tokens: dict[str, str] = {}

    def person(self, name: str, **settings) -> str:
        """A user with a phone and the default preferences."""
        user = f"{name}-{self.run}"
        self.tokens[user] = uuid.uuid4().hex * 2 if self.provider == "apns" else f"{user}:fcm"
        self.phones(self.app, user, self.tokens[user], platform="ios" if self.provider == "apns" else "android")
        if settings:
            sql(self.stack, "INSERT INTO rules.person (app, user_id, settings) "
                            f"VALUES ('{self.app}', '{user}', '{json.dumps(settings)}')")
        return user

    def happen(self, type: str, **data) -> str:
        """Publishes an event, waits for its decision and returns its id."""
        id = f"{self.run}-{uuid.uuid4().hex[:8]}"
        self.stack.publish(f"{self.app}.{type}", cloud_event(type, data, id),
                           content_type="application/cloudevents+json")
        eventually(lambda: sql(self.stack, f"SELECT 1 FROM rules.event WHERE id = '{id}'"), what=f"{type} to be decided")
        return id

    def requests(self, user: str) -> list[dict]:
        """All requests to a user's phone."""
        return [r for r in self.stack.requests(self.provider) if r.get("token") == self.tokens[user]]

    def got(self, user: str, count: int, within: float = 30) -> list[dict]:
        """The requests to a user's phone, once `count` have arrived. ``got_exactly`` proves that no more follow."""
        assert count > 0, "use got_exactly() for zero pushes"
        found = eventually(lambda: len(found := self.requests(user)) >= count and found, within, f"{count} pushes to {user}")
        assert len(found) == count, [r["body"] for r in found]
        return found

    def got_exactly(self, **counts: int) -> None:
        """Checks that each user got this number of pushes, after everything published was processed."""
        all_is_handled(self.stack, self.app, self.provider)
        users = {name: next(user for user in self.tokens if user.startswith(f"{name}-{self.run}")) for name in counts}
        assert {name: len(self.requests(user)) for name, user in users.items()} == counts

    def decided(self, event: str, user: str) -> str:
        """`answer reason` of the last decision."""
        return sql(self.stack, "SELECT answer || ' ' || reason FROM rules.decision JOIN rules.event ON event = key "
                               f"WHERE id = '{event}' AND user_id = '{user}' ORDER BY step DESC LIMIT 1")

    def inbox(self, user: str) -> list[str]:
        """The bodies in a user's inbox, in order of arrival."""
        text = sql(self.stack, "SELECT content ->> 'body' FROM rules.inbox JOIN rules.saying ON saying.id = saying "
                               f"WHERE inbox.user_id = '{user}' ORDER BY at, notification")
        return text.splitlines()


@pytest.fixture
def product(stack, phones):
    return lambda app, provider="apns": Product(stack, phones, app, provider)


def aps(request: dict) -> dict:
    return request["body"]["aps"]


# 000 BaoLife

TRIGGERS = [
    ("npc.message.sent", {"npc": {"id": "n", "name": "Mei"}, "conversation": {"id": "c"}, "message": {"text": "Hi"}},
     "Mei: Hi", "relationship", "baolife://conversation/c"),
    ("achievement.unlocked", {"achievement": {"id": "a", "name": "First Job"}},
     "Achievement Unlocked: First Job", "milestone", "baolife://achievements/a"),
    ("life.event.happened", {"event_log": {"id": "l", "title": "It rained"}}, "It rained", "life_event",
     "baolife://life/l"),
    ("milestone.reached", {"milestone": {"id": "m", "description": "You married Mei"}},
     "Life Milestone: You married Mei", "milestone", "baolife://life/m"),
    ("career.changed", {"career": {"id": "j", "description": "You were fired"}}, "Career Update: You were fired",
     "life_event", "baolife://career/j"),
]


def test_baolife_pushes_five_types_and_at_most_four_an_hour(product):
    game = product("baolife")
    player = game.person("player")
    events = [game.happen(type, player={"id": player}, **data) for type, data, *_ in TRIGGERS]
    seen = {(aps(r)["alert"]["body"], aps(r)["category"], r["body"]["data"]["deep_link"]) for r in game.got(player, 4)}
    assert seen == {tuple(trigger[2:]) for trigger in TRIGGERS[:4]}
    assert game.decided(events[4], player) == "inbox capped"
    game.got_exactly(player=4)
    assert game.inbox(player) == [trigger[2] for trigger in TRIGGERS]


def test_baolife_pushes_only_to_absent_players(product):
    game = product("baolife")
    player = game.person("player")
    type, data, *_ = TRIGGERS[0]
    game.happen("session.active", player={"id": player, "device": "phone"}, conversation={"id": "other"})
    assert game.decided(game.happen(type, player={"id": player}, **data), player) == "inbox present"
    game.happen("session.ended", player={"id": player, "device": "phone"})
    assert game.decided(game.happen(type, player={"id": player}, **data), player) == "push wanted"
    game.got_exactly(player=1)
    assert len(game.inbox(player)) == 2


def test_baolife_pushes_its_existing_prompts(product):
    game = product("baolife")
    player = game.person("player")
    game.happen("v2Prompt", player={"id": player}, prompt={"id": "v", "text": "Your landlord wants an answer"})
    (request,) = game.got(player, 1)
    assert aps(request)["alert"]["body"] == "Your landlord wants an answer"
    game.got_exactly(player=1)


# 001 The family portal (the payload byte for byte is in test_demo)

def test_the_portal_pushes_to_all_but_the_sender_with_the_documented_headers(product):
    portal = product("family-portal")
    pat, sam, kim = (portal.person(name) for name in ("pat", "sam", "kim"))
    portal.happen("chat.message.created", message={"id": 1, "text": "Dinner?", "thread_id": 9},
                  sender={"id": pat, "name": "Pat"}, participants=[pat, sam, kim], family={"id": 7})
    for user in (sam, kim):
        (request,) = portal.got(user, 1)
        assert aps(request)["alert"] == {"title": "New message", "body": "Pat: Dinner?"}
        assert request["body"]["data"]["thread_id"] == 9
        headers = request["headers"]
        assert (headers["apns-topic"], headers["apns-push-type"], headers["apns-priority"]) == (
            "com.familyportal.app", "alert", "10")
        assert portal.inbox(user) == ["Pat: Dinner?"]
    portal.got_exactly(pat=0, sam=1, kim=1)
    assert portal.inbox(pat) == []


# 002 Monolite HR

REQUEST = {"id": "r-1", "kind": "vacation", "from": "2026-07-01", "until": "2026-07-14"}


def notification(request: dict) -> dict:
    return request["body"]["message"]["notification"]


def soon() -> tuple[str, float]:
    """A time of day in UTC at least five seconds ahead, and the seconds until shortly after it."""
    now = datetime.datetime.now(datetime.timezone.utc)
    then = (now + datetime.timedelta(seconds=65)).replace(second=0, microsecond=0)
    return then.strftime("%H:%M"), (then - now).total_seconds() + 60


def test_a_decision_reaches_every_device_of_the_worker_without_details(product, stack):
    hr = product("monolite-hr", "fcm")
    worker = hr.person("worker")
    tablet = f"{worker}:tablet"
    hr.phones("monolite-hr", worker, tablet, platform="android")
    event = hr.happen("request.approved", request=REQUEST, worker={"id": worker})
    (request,) = hr.got(worker, 1)
    eventually(lambda: [r for r in stack.requests("fcm") if r.get("token") == tablet], what="the tablet")
    assert notification(request) == {"title": "Request approved", "body": "Open the app to see the details."}
    data = request["body"]["message"]["data"]
    assert (data["entity_id"], data["deep_link"]) == ("r-1", "monolitehr://activities/r-1")
    assert hr.inbox(worker) == ["Your vacation request for July 1, 2026 to July 14, 2026 was approved."]
    eventually(
        lambda: sql(stack, "SELECT push_sent, devices, is_failed FROM rules.delivery JOIN rules.decision USING (notification)"
                           f" JOIN rules.event ON event = key WHERE id = '{event}'") == "t|2|f", what="two devices")


def test_the_upstream_gets_a_delivery_report(product, stack):
    hr = product("monolite-hr", "fcm")
    worker = hr.person("worker")
    queue = f"test-reports-{hr.run}"
    with stack.channel() as channel:
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_bind(queue, "notifications", "event.reported.monolite-hr")
    try:
        event = hr.happen("request.approved", request=REQUEST, worker={"id": worker})
        reports: list[dict] = []

        def is_reported() -> bool:
            reports.extend(json.loads(body) for _, body in stack.take(queue))
            return any(r["data"]["event_id"] == event and r["data"]["devices_notified"] == 1 for r in reports)

        eventually(is_reported, what="the report")
        data = [r["data"] for r in reports if r["data"]["event_id"] == event][-1]
        assert uuid.UUID(data["notification_id"])
        assert (data["push_sent"], data["devices_notified"], data["failed"]) == (True, 1, False)
        assert reports[-1]["type"] == "heliograph.notification.reported"
    finally:
        with stack.channel() as channel:
            channel.queue_delete(queue)


def test_a_disabled_type_is_in_the_inbox_only(product):
    hr = product("monolite-hr", "fcm")
    off = hr.person("off", enabled=False)
    picky = hr.person("picky", types={"request-status": False})
    for user, reason in ((off, "switched-off"), (picky, "type-off")):
        event = hr.happen("request.rejected", request=REQUEST, worker={"id": user}, reason="Too many are away")
        assert hr.decided(event, user) == f"inbox {reason}"
        assert hr.inbox(user) == [
            "Your vacation request for July 1, 2026 to July 14, 2026 was rejected: Too many are away"]
    hr.got_exactly(off=0, picky=0)


def test_the_requester_is_pushed_within_five_seconds(product):
    hr = product("monolite-hr", "fcm")
    worker = hr.person("worker")
    for number in range(1, 6):
        published = time.time()
        hr.happen("request.approved", request={**REQUEST, "id": f"r-{number}"}, worker={"id": worker})
        arrived = max(r["receivedAt"] for r in hr.got(worker, number)) / 1000
        assert arrived - published <= 5, f"request {number} arrived after {arrived - published:.1f} s"


def test_a_manager_and_a_worker_get_a_daily_digest_at_their_own_time(product, stack):
    hr = product("monolite-hr", "fcm")
    clock, wait = soon()
    manager = hr.person("manager", digest_time=clock, zone="UTC")
    idle = hr.person("idle", digest_time=clock, zone="UTC")
    worker = hr.person("worker", digest_time=clock, zone="UTC")
    for number in range(3):
        hr.happen("request.submitted", request={"id": f"{hr.run}-{number}", "kind": "vacation"},
                  worker={"id": worker, "name": "Ana"}, manager={"id": manager})
    hr.happen("request.submitted", request={"id": f"{hr.run}-idle", "kind": "vacation"},
              worker={"id": worker, "name": "Ana"}, manager={"id": idle})
    for number in ("0", "idle"):
        hr.happen("request.withdrawn", request={"id": f"{hr.run}-{number}"})
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for number, days in enumerate((20, 10, 15, 200)):
        hr.happen("document.recorded", worker={"id": worker}, document={
            "id": f"{hr.run}-{number}", "kind": f"Permit {number}",
            "expires_on": (today + datetime.timedelta(days=days)).isoformat()})
    hr.happen("document.renewed", document={"id": f"{hr.run}-1"})
    (request,) = hr.got(manager, 1, wait)
    assert notification(request) == {"title": "Pending requests", "body": "Requests wait for your decision."}
    assert request["body"]["message"]["data"]["count"] == "2"
    assert hr.inbox(manager) == ["2 requests wait for your decision, the first from Ana (vacation)."]
    (request,) = hr.got(worker, 1, wait)
    data = request["body"]["message"]["data"]
    nearest = (today + datetime.timedelta(days=15)).isoformat()
    assert (data["count"], data["nearest"], data["deep_link"]) == ("2", nearest, "monolitehr://settings/documents")
    hr.got_exactly(manager=1, worker=1, idle=0)
    assert hr.inbox(idle) == []


def test_an_announcement_reaches_every_member_of_the_app(product):
    hr = product("monolite-hr", "fcm")
    ana, ben, out = (hr.person(name) for name in ("ana", "ben", "out"))
    deaf = hr.person("deaf", types={"announcements": False})
    hr.happen("staff.listed", employees=[{"id": user} for user in (ana, ben, deaf)])
    # The same user has another phone and other rules in another app.
    other = product("family-portal")
    other.phones("family-portal", ana, "ab" * 32)
    event = hr.happen("announcement.published", announcement={"id": "a", "title": "Party", "text": "In the yard"})
    for user in (ana, ben):
        (request,) = hr.got(user, 1)
        assert notification(request) == {"title": "Party", "body": "In the yard"}
    assert hr.decided(event, deaf) == "inbox type-off"
    assert hr.decided(event, out) == ""
    hr.got_exactly(ana=1, ben=1, out=0, deaf=0)
    all_is_handled(hr.stack, "family-portal")
    assert not [r for r in hr.stack.requests("apns") if r.get("token") == "ab" * 32]
    hr.happen("staff.listed", employees=[])


def test_a_failed_push_is_marked_in_the_inbox(product, stack):
    hr = product("monolite-hr", "fcm")
    worker = f"gone-{hr.run}"
    hr.tokens[worker] = f"{worker}:unregistered"
    hr.phones("monolite-hr", worker, hr.tokens[worker], platform="android")
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", {
        "provider": "fcm", "token": hr.tokens[worker], "status": 404, "error_code": "UNREGISTERED"})
    assert status < 300, answer
    event = hr.happen("request.approved", request=REQUEST, worker={"id": worker})
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.outcome JOIN rules.decision USING (notification) "
                                  f"JOIN rules.event ON event = key WHERE id = '{event}'") != "0", what="the answer")
    status = sql(stack, "SELECT disposition, is_failed FROM rules.outcome JOIN rules.delivery USING (notification) "
                        f"JOIN rules.decision USING (notification) JOIN rules.event ON event = key WHERE id = '{event}'")
    assert status == "unregistered|t"
    assert len(hr.inbox(worker)) == 1


# 003 Tweet

def test_the_badge_counts_unread_messages_and_is_cleared_on_every_device(product):
    chat = product("tweet-chat")
    ada, bob = chat.person("ada"), chat.person("bob")
    sender = {"id": ada, "name": "Ada Byron", "username": "ada"}
    for number, content in enumerate(("See you", "")):
        chat.happen("chat.message.sent", chat={"id": "c-1"}, message={"id": f"m-{number}", "content": content},
                    sender=sender, members=[ada, bob])
        chat.got(bob, number + 1)
    first, second = chat.got(bob, 2)
    assert (aps(first)["alert"], aps(first)["badge"]) == ({"title": "Ada Byron", "body": "See you"}, 1)
    assert (aps(second)["alert"]["body"], aps(second)["badge"]) == ("New message", 2)
    assert first["body"]["data"]["deep_link"] == "tweet://chat/c-1"
    # A message in another chat is unread too; opening one chat still clears the badge, as the document requires.
    chat.happen("chat.message.sent", chat={"id": "c-2"}, message={"id": "m-3", "content": "Other"}, sender=sender,
                members=[ada, bob])
    chat.got(bob, 3)
    chat.happen("chat.opened", reader={"id": bob, "device": "tablet"}, chat={"id": "c-1"})
    cleared = chat.got(bob, 4)[3]
    assert aps(cleared) == {"badge": 0}
    assert sql(chat.stack, f"SELECT count(*) FROM rules.inbox WHERE user_id = '{bob}' AND read_at IS NULL") == "0"
    chat.got_exactly(ada=0, bob=4)


# 004 Hide & Seek

GAME = "6c0a7c1e-95f1-4c2b-8a4e-0f6d2b1f9a11"
ROWS = [
    # event, data, body by role
    ("game.player.joined", {}, {}),
    ("game.started", {}, {"hider": "Game on! The hiding phase has begun.", "seeker": "Game on! The hiding phase has begun."}),
    ("game.phase.changed", {"game": {"id": GAME, "phase": "seeking"}},
     {"hider": "Seeking phase has begun! Seekers, start hunting.",
      "seeker": "Seeking phase has begun! Seekers, start hunting."}),
    ("game.question.asked",
     {"question": {"id": "q", "type": "radar", "status": "answerable", "parameters": {"radius_m": 3000}}},
     {"hider": "A 3 km radar question has been asked. Your answer timer is running."}),
    ("game.question.asked",
     {"question": {"id": "q", "type": "thermometer", "status": "in_progress", "parameters": {"min_travel_m": 500}}},
     {"hider": "A 500 m thermometer question has started. The seeker is traveling."}),
    ("game.question.answerable", {"question": {"id": "q"}}, {"hider": "A thermometer question is ready for your answer."}),
    ("game.question.answered", {"question": {"id": "q", "type": "radar", "answer": "closer"}},
     {"seeker": "Question answered: Closer! A new exclusion zone is on the map."}),
    ("game.phase.changed", {"game": {"id": GAME, "phase": "endgame"}},
     {"hider": "Endgame! Stay where you are.", "seeker": None}),
    ("game.ended", {}, {}),
]


def test_every_row_of_the_games_table(product):
    game = product("hide-and-seek")
    users = {role: game.person(role) for role in ("hider", "seeker")}
    players = [{"user": user, "role": role} for role, user in users.items()]
    counts = collections.Counter()
    for type, data, expected in ROWS:
        game.happen(type, **{"game": {"id": GAME}, "players": players, **data})
        for role, body in expected.items():
            counts[role] += 1
            request = game.got(users[role], counts[role])[-1]
            assert request["body"]["data"]["game_id"] == GAME
            if body is None:
                assert aps(request) == {"content-available": 1}
                assert request["headers"]["apns-push-type"] == "background"
            else:
                assert aps(request)["alert"] == {"title": "Hide & Seek", "body": body}
                assert (aps(request)["interruption-level"], aps(request)["sound"]) == ("time-sensitive", "default")
    game.got_exactly(**counts)
    for role, user in users.items():
        assert len(game.inbox(user)) == counts[role] - (role == "seeker")
