"""Entries under `live`: one surface for a thing in progress, on iPhones and Android phones of the simulator."""

import datetime
import json
import shutil
import subprocess
import time
import uuid

import pytest
from live_run import LiveRun
from local_stack import ROOT, cloud_event, eventually, sql
from unsend import revoke

APP = "family-portal"
RULES = """
app: family-portal
types: { orders: { about: Orders } }
events:
  order.accepted: &order { examples: [{ order: { id: o, minutes: 25 }, users: [u] }] }
  order.ready: *order
  courier.moved: *order
  order.delivered: *order
  parcel.sent: *order
  parcel.arrived: *order
  match.started: *order
  match.scored: *order
  match.ended: *order
live:
  delivery:
    to: { users: users }
    item: "{{order.id}}"
    on: [apple, android]
    type: orders
    title: Your order
    attributes-type: DeliveryAttributes
    state: { minutes: "{{order.minutes}}" }
    start: { event: order.accepted }
    update:
      - { event: order.ready }
      - { event: courier.moved, every: 2s }
    end: { event: order.delivered }
    otherwise: { event: order.ready, title: Ready }
  parcel:
    to: { users: users }
    item: "{{order.id}}"
    title: Your parcel
    attributes-type: ParcelAttributes
    state: {}
    start: { event: parcel.sent }
    end: { event: parcel.arrived }
    ends-after: 2s
  match:
    to: { users: users }
    item: "{{order.id}}"
    title: Your match
    attributes-type: MatchAttributes
    state: { minutes: "{{order.minutes}}" }
    start: { event: match.started }
    update: { event: match.scored, every: 2s }
    end: { event: match.ended }
    channel: { above: 1 }
rules: {}
"""


@pytest.fixture(scope="module")
def rules(stack, tmp_path_factory):
    """The stack with a rule file of this test for one app."""
    folder = tmp_path_factory.mktemp("rules")
    for file in (ROOT / "Services" / "Rules" / "RuleSets").glob("*.yaml"):
        shutil.copy(file, folder)
    (folder / f"{APP}.yaml").write_text(RULES)
    stack.service("stop", "rules")
    stack.environment["LOCAL_RULES_DIRECTORY"] = str(folder)
    try:
        stack.service("start", "rules")
        stack.service("ready", "rules")
        yield
    finally:
        stack.service("stop", "rules")
        del stack.environment["LOCAL_RULES_DIRECTORY"]
        stack.service("start", "rules")
        stack.service("ready", "rules")
        # No rule uses channels any more, so the unused ones are deleted too.
        eventually(lambda: channels(stack) == [], 60, "the deletion of all channels")


class Customer:
    """A user with an iPhone and an Android phone."""

    def __init__(self, stack, shows_order: str | None = None):
        self.stack, self.user, self.order = stack, f"live-{uuid.uuid4().hex[:8]}", f"o-{uuid.uuid4().hex[:8]}"
        self.alert, self.start, self.activity = (uuid.uuid4().hex * 2 for _ in range(3))
        self.android = f"android-{uuid.uuid4().hex}"
        self.iphone = uuid.uuid4()
        self.register(self.iphone, ("alert", self.alert), ("push-to-start", self.start))
        self.register(uuid.uuid4(), ("fcm-token", self.android))

    def is_skipped(self, rule: str, count: int) -> bool:
        """Whether the registry had no token for so many notifications of a rule."""
        return sql(
            self.stack, "SELECT count(*) FROM rules.outcome JOIN rules.decision USING (notification) "
                        "WHERE user_id = :'user' AND rule = :'rule' AND outcome.reason = 'no-device'",
            user=self.user, rule=rule) == str(count)

    def show_activity(self) -> None:
        """The app reports the token of its Live Activity."""
        self.register(self.iphone, ("alert", self.alert), ("push-to-start", self.start), ("live-activity", self.activity))

    def register(self, installation: uuid.UUID, *tokens: tuple[str, str]) -> None:
        registrations = [
            {"kind": kind, "token": token}
            | ({"platform": "android"} if kind == "fcm-token" else {"environment": "production"})
            | ({"scope": self.order} if kind == "live-activity" else {})
            for kind, token in tokens]
        status, answer = self.stack.http(
            "PUT", f"{self.stack.env['REGISTRY_URL']}/v1/installations/{installation}", {"registrations": registrations},
            {"Authorization": f"Bearer {self.stack.bearer(APP, self.user)}"})
        assert status in (200, 201), answer

    def happen(self, type: str, minutes: int = 9, at: datetime.datetime | None = None) -> str:
        event = uuid.uuid4().hex
        body = json.loads(cloud_event(type, {"order": {"id": self.order, "minutes": minutes}, "users": [self.user]}, event))
        body["time"] = (at or datetime.datetime.now(datetime.timezone.utc)).isoformat().replace("+00:00", "Z")
        self.stack.publish(f"{APP}.{type}", json.dumps(body).encode(), content_type="application/cloudevents+json")
        return event

    def states(self) -> list[tuple[str, int | None]]:
        """`(event, minutes)` of each push to the Live Activity, in order."""
        found = []
        for request in self.stack.requests("apns"):
            if request.get("token") in (self.start, self.activity):
                aps = request["body"]["aps"]
                found.append((aps["event"], aps.get("content-state", {}).get("minutes")))
        return found

    def messages(self) -> list[dict]:
        """The data of each message to the Android phone that has a state."""
        bodies = [request["body"] for request in self.stack.requests("fcm") if request.get("token") == self.android]
        return [body["message"]["data"] for body in bodies if "live" in body["message"].get("data", {})]

    def alerts(self, token: str) -> int:
        return sum(1 for provider in ("apns", "fcm") for request in self.stack.requests(provider)
                   if request.get("token") == token and "Ready" in json.dumps(request["body"]))


def test_phones_show_a_thing_in_progress(stack, rules):
    customer = Customer(stack)
    customer.happen("order.accepted", 25)
    eventually(lambda: customer.states() == [("start", 25)], what="the start")
    customer.show_activity()
    customer.happen("order.ready", 12)
    eventually(lambda: customer.states()[-1] == ("update", 12), what="the update")
    customer.happen("order.delivered", 0)
    eventually(lambda: customer.states()[-1] == ("end", 0), what="the end")
    eventually(lambda: [one["live_event"] for one in customer.messages()] == ["start", "update", "end"],
               what="three messages to Android")
    assert [json.loads(one["live_state"]) for one in customer.messages()] == [
        {"minutes": 25}, {"minutes": 12}, {"minutes": 0}]
    assert {one["live_item"] for one in customer.messages()} == {customer.order}
    # Nothing waits after the end.
    assert sql(stack, "SELECT count(*) FROM rules.held WHERE user_id = :'user'", user=customer.user) == "0"


def test_of_frequent_updates_the_newest_is_sent_in_order(stack, rules):
    customer = Customer(stack)
    customer.happen("order.accepted", 100)
    eventually(lambda: customer.states() == [("start", 100)], what="the start")
    customer.show_activity()
    begun = time.monotonic()
    last = [customer.happen("courier.moved", minutes) for minutes in range(60, 0, -1)][-1]
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.event WHERE id = :'id'", id=last) == "1",
               what="the last event decided")
    eventually(lambda: customer.states()[-1] == ("update", 1), 30, "the newest state")
    windows = (time.monotonic() - begun) / 2 + 2
    updates = [minutes for event, minutes in customer.states() if event == "update"]
    assert updates == sorted(updates, reverse=True), "an older state came after a newer one"
    assert len(updates) <= windows, f"{len(updates)} updates in {windows:.0f} steps of the clock"
    print(f"60 updates became {len(updates)} pushes")
    requests = [one for one in stack.requests("apns") if one.get("token") == customer.activity]
    assert {one["headers"]["apns-priority"] for one in requests} == {"5"}
    # Out of order: an update from before the newest one, and one from before the end.
    now = datetime.datetime.now(datetime.timezone.utc)
    customer.happen("order.delivered", 0, now)
    eventually(lambda: customer.states()[-1] == ("end", 0), what="the end")
    late = customer.happen("courier.moved", 50, now - datetime.timedelta(seconds=1))
    eventually(lambda: "drop done" in sql(
        stack, "SELECT answer || ' ' || reason FROM rules.decision JOIN rules.event ON event.key = decision.event "
               "WHERE event.id = :'id'", id=late), what="the decision on the late update")
    assert customer.states()[-1] == ("end", 0)


def test_a_device_without_the_surface_gets_an_alert(stack, rules):
    shows, lacks = Customer(stack), Customer(stack)
    for customer in (shows, lacks):
        customer.happen("order.accepted")
        eventually(lambda customer=customer: customer.states() == [("start", 9)], what="the start")
    shows.show_activity()
    for customer in (shows, lacks):
        customer.happen("order.ready")
    eventually(lambda: lacks.alerts(lacks.alert) == 1, what="the alert")
    eventually(lambda: shows.states()[-1][0] == "update", what="the update")
    assert shows.alerts(shows.alert) == 0
    assert shows.alerts(shows.android) == lacks.alerts(lacks.android) == 0


def test_a_surface_without_an_end_ends_by_time(stack, rules):
    customer = Customer(stack)
    customer.happen("parcel.sent")
    eventually(lambda: customer.states() == [("start", None)], what="the start")
    customer.show_activity()
    eventually(lambda: customer.states()[-1][0] == "end", 30, "the end by time")
    assert [event for event, _ in customer.states()] == ["start", "end"]


def test_a_user_who_switched_the_type_off_gets_no_surface(stack, rules):
    customer = Customer(stack)
    status, answer = stack.http(
        "PATCH", f"{stack.env['RULES_URL']}/v1/preferences", raw=json.dumps({"types": {"orders": False}}).encode(),
        headers={"Authorization": f"Bearer {stack.bearer(APP, customer.user)}",
                 "Content-Type": "application/merge-patch+json"})
    assert status == 200, answer
    event = customer.happen("order.accepted")
    decided = ("SELECT string_agg(DISTINCT answer || ' ' || reason, ',' ORDER BY answer || ' ' || reason) "
               "FROM rules.decision JOIN rules.event ON event.key = decision.event "
               "WHERE event.id = :'id' AND rule LIKE 'delivery-start%'")
    eventually(lambda: sql(stack, decided, id=event) == "drop type-off", what="the decision")
    assert customer.states() == [] and customer.messages() == []


def test_the_revocation_of_a_start_ends_the_surface(stack, rules):
    customer = Customer(stack)
    start = customer.happen("order.accepted", 25)
    eventually(lambda: customer.states() == [("start", 25)], what="the start")
    eventually(lambda: len(customer.messages()) == 1, what="the start on Android")
    customer.show_activity()
    customer.happen("courier.moved", 9)
    revoke(stack, "--event", start, "--reason", "wrong customer")
    eventually(lambda: customer.states()[-1] == ("end", None), what="the end")
    eventually(lambda: customer.messages()[-1]["live_event"] == "end", what="the end on Android")
    assert customer.messages()[-1]["live_item"] == customer.order
    assert sql(stack, "SELECT count(*) FROM rules.held WHERE user_id = :'user'", user=customer.user) == "0"
    late = customer.happen("order.ready", 5)
    eventually(lambda: sql(
        stack, "SELECT string_agg(DISTINCT answer || ' ' || reason, ',') FROM rules.decision "
               "JOIN rules.event ON event.key = decision.event WHERE event.id = :'id' AND rule LIKE 'delivery-update%'",
        id=late) == "drop revoked", what="the decision on the late update")
    assert customer.states()[-1] == ("end", None)
    code, output = stack.pushctl("explain", start, "--app", APP, "--user", customer.user)
    assert code == 0 and "delivery-end" in output and "its start was taken back" in output, output


def test_a_late_token_gets_the_newest_state_once(stack, rules):
    customer = Customer(stack)
    customer.happen("order.accepted", 25)
    eventually(lambda: customer.states() == [("start", 25)], what="the start")
    for number, minutes in enumerate((12, 8)):
        customer.happen("order.ready", minutes)
        eventually(lambda number=number: customer.is_skipped("delivery-update", number + 1), what="the update without a device")
    customer.show_activity()
    eventually(lambda: customer.states()[-1] == ("update", 8), what="the newest state")
    customer.happen("order.delivered", 0)
    eventually(lambda: customer.states()[-1] == ("end", 0), what="the end")
    assert customer.states() == [("start", 25), ("update", 8), ("end", 0)]


def test_a_token_that_is_reported_after_the_end_gets_the_end(stack, rules):
    customer, other = Customer(stack), Customer(stack)
    customer.happen("order.accepted", 25)
    eventually(lambda: customer.states() == [("start", 25)], what="the start")
    customer.happen("order.delivered", 0)
    eventually(lambda: customer.is_skipped("delivery-end", 1), what="the end without a device")
    # Another user reports an activity of this order: nothing is sent to it.
    other.order = customer.order
    other.show_activity()
    customer.show_activity()
    eventually(lambda: customer.states() == [("start", 25), ("end", 0)], what="the end")
    assert other.states() == []


def test_many_followers_get_every_state_in_order_and_no_activity_stays(stack, rules, tmp_path):
    run = LiveRun(stack, tmp_path, followers=12, seconds=6, late=3)
    run.run(patience=60)
    assert run.disordered() == []
    assert run.over_budget(every=2) == []
    assert run.orphans() == []
    print(f"{run.updates()} updates sent, {run.saved()} saved by coalescing")
    assert run.saved() > 0


# Broadcast channels


def channels(stack) -> list[str]:
    """The ids of the app's channels at the simulator."""
    environment = {**stack.environment, **stack.env}
    listed = subprocess.run([stack.product("pushctl"), "channels", "list", "--app", APP], env=environment,
                            capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0, listed.stderr
    return listed.stdout.split()


def ready(stack) -> int:
    return int(sql(stack, "SELECT count(*) FROM rules.channel WHERE channel IS NOT NULL AND item IS NULL"))


class Match(LiveRun):
    """A live surface with a channel, by the rule file of this test."""

    ENTRY, START, UPDATE, END = "match", "match.started", "match.scored", "match.ended"


def test_many_followers_of_a_channel_get_every_state_in_order(stack, rules, tmp_path):
    eventually(lambda: ready(stack) > 0, 60, "a ready channel")
    run = Match(stack, tmp_path, followers=12, seconds=6, late=0)
    run.run(patience=60)
    assert all(phone.channel for phone in run.phones.values())
    assert run.disordered() == []
    assert run.over_budget(every=2) == []
    assert run.orphans() == []
    print(f"{run.updates()} updates, {run.saved()} saved by coalescing, {run.saved_by_channels()} by the channel")
    assert run.saved() > 0 and run.saved_by_channels() > 0
    (channel,) = run.channels
    assert channel in channels(stack)
    code, output = stack.pushctl("explain", run.events[-1], "--app", APP)
    assert code == 0 and f"(channel {channel} of production)" in output, output
    # The simulator's phones show what the channel sent.
    token = run.phones[run.users[0]].start
    status, shown = stack.http("GET", f"{stack.env['SIMULATOR_URL']}/shown?provider=apns&token={token}")
    assert status == 200 and shown["shown"][0]["event"] == "end", shown
    run.delete_channels()
    eventually(lambda: channel not in channels(stack), what="the deletion at APNs")


def test_the_revocation_of_a_start_ends_the_surface_of_its_channel(stack, rules, tmp_path):
    eventually(lambda: ready(stack) > 0, 60, "a ready channel")
    run = Match(stack, tmp_path, followers=3, seconds=1, late=0)
    run.register("push-to-start", run.users)
    run.happen(run.START, 9)
    run.wait(lambda phone: phone.channel, run.users, 60, "start with a channel")
    run.happen(run.UPDATE, 5)
    revoke(stack, "--event", run.events[0], "--reason", "cancelled")
    run.wait(lambda phone: phone.has_ended, run.users, 60, "end")
    run.delete_channels()
