"""Live Activities, VoIP pushes and broadcast channels: publishes events with pika, and checks the pushes."""

import datetime
import json
import shutil
import subprocess
import uuid

import pytest
from local_stack import ROOT, cloud_event, eventually
from sentinels import open_pushes

APP, BUNDLE = "hide-and-seek", "com.example.hideandseek"
RULES = """
app: hide-and-seek
events:
  match.started: { examples: [{ match: m, players: [1], teams: { home: A, away: B } }] }
  match.scored: { examples: [{ match: m, players: [1], score: { home: 1, away: 0 }, channel: dHN0 }] }
  match.ended: { examples: [{ match: m, players: [1], score: { home: 1, away: 0 } }] }
  call.incoming: { examples: [{ call: c, to: 1, from: { name: Pat } }] }
rules:
  start:
    when: { event: match.started }
    to: { users: players }
    say:
      title: "{{teams.home}} against {{teams.away}}"
      live-activity:
        event: start
        attributes-type: MatchAttributes
        attributes: { match: "{{match}}" }
        content-state: { home: 0, away: 0 }
        input-push-token: true
    how: { as: live-activity, sound: default }
  score:
    when: { event: match.scored }
    to: { users: players }
    say:
      live-activity:
        event: update
        content-state: "{{score}}"
        stale-date: { after: 10m }
    how: { as: live-activity, scope: "{{match}}" }
  score-everywhere:
    when: { event: match.scored }
    to: { channel: "{{channel}}" }
    say: { live-activity: { event: update, content-state: { home: "{{score.home}}", away: "{{score.away}}" } } }
    how: { as: live-activity }
  end:
    when: { event: match.ended }
    to: { users: players }
    say:
      live-activity: { event: end, content-state: { home: "{{score.home}}" }, dismissal-date: { after: 5m } }
    how: { as: live-activity, scope: "{{match}}" }
  call:
    when: { event: call.incoming }
    to: { users: to }
    say: { data: { call: "{{call}}" }, payload: { caller: "{{from.name}}" } }
    how: { as: voip }
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


class Player:
    """A user whose phone has a token for each push type."""

    KINDS = [("alert", None), ("voip", None), ("push-to-start", None), ("live-activity", "m-1"), ("live-activity", "m-2")]

    def __init__(self, stack):
        self.user = f"player-{uuid.uuid4().hex[:8]}"
        self.tokens = {kind: uuid.uuid4().hex * 2 for kind in self.KINDS}
        status, answer = stack.http(
            "PUT", f"{stack.env['REGISTRY_URL']}/v1/installations/{uuid.uuid4()}",
            {"registrations": [
                {"kind": kind, "token": token, "environment": "production"} | ({"scope": scope} if scope else {})
                for (kind, scope), token in self.tokens.items()
            ]},
            {"Authorization": f"Bearer {stack.bearer(APP, self.user)}"})
        assert status in (200, 201), answer


@pytest.fixture
def happen(stack, rules):
    def happen(type: str, time: str | None = None, **data) -> None:
        body = json.loads(cloud_event(type, data, uuid.uuid4().hex))
        if time:
            body["time"] = time
        stack.publish(f"{APP}.{type}", json.dumps(body).encode(), content_type="application/cloudevents+json")
    return happen


def requests(stack, token: str, count: int = 1) -> list[dict]:
    """The requests to a device, once `count` have arrived; fails if there are more."""
    def arrived():
        found = [request for request in stack.requests("apns") if request.get("token") == token]
        return found if len(found) >= count else None
    found = eventually(arrived, 60, f"{count} pushes")
    assert len(found) == count, found
    return found


def type_and_topic(request: dict) -> tuple[str, str]:
    assert request["status"] == 200, request
    return request["headers"]["apns-push-type"], request["headers"]["apns-topic"]


LIVE = ("liveactivity", f"{BUNDLE}.push-type.liveactivity")


def test_a_live_activity_starts_updates_and_ends(stack, happen):
    stack.forget_requests()
    player = Player(stack)
    happen("match.started", "2026-03-01T10:00:00Z", match="m-1", players=[player.user], teams={"home": "A", "away": "B"})
    (start,) = requests(stack, player.tokens["push-to-start", None])
    assert type_and_topic(start) == LIVE
    began = int(datetime.datetime(2026, 3, 1, 10, tzinfo=datetime.timezone.utc).timestamp())
    assert start["body"] == {"aps": {
        "event": "start", "timestamp": began, "attributes-type": "MatchAttributes", "attributes": {"match": "m-1"},
        "content-state": {"home": 0, "away": 0}, "input-push-token": 1,
        "alert": {"title": "A against B", "sound": "default"},
    }}
    happen("match.scored", "2026-03-01T10:20:00Z", match="m-1", players=[player.user], score={"home": 1, "away": 0},
           channel="bm9ib2R5")
    (update,) = requests(stack, player.tokens["live-activity", "m-1"])
    assert type_and_topic(update) == LIVE
    assert update["body"] == {"aps": {
        "event": "update", "timestamp": began + 1200, "content-state": {"home": 1, "away": 0},
        "stale-date": began + 1800,
    }}
    happen("match.ended", "2026-03-01T11:45:00Z", match="m-1", players=[player.user], score={"home": 2, "away": 0})
    end = requests(stack, player.tokens["live-activity", "m-1"], 2)[1]
    assert type_and_topic(end) == LIVE
    assert end["body"] == {"aps": {
        "event": "end", "timestamp": began + 6300, "content-state": {"home": 2}, "dismissal-date": began + 6600,
    }}
    # The other activity and the phone got no push: a later VoIP push has arrived, and every push has an outcome.
    witness = Player(stack)
    happen("call.incoming", call="c-8", to=witness.user, **{"from": {"name": "Pat"}})
    requests(stack, witness.tokens["voip", None])
    eventually(lambda: open_pushes(stack, APP) == 0, 60, "an answer to every push")
    assert len(requests(stack, player.tokens["live-activity", "m-1"], 2)) == 2
    others = [player.tokens["live-activity", "m-2"], player.tokens["alert", None], player.tokens["voip", None]]
    assert not [request for request in stack.requests("apns") if request.get("token") in others]


def test_a_voip_push_goes_to_the_voip_token(stack, happen):
    stack.forget_requests()
    player = Player(stack)
    happen("call.incoming", call="c-7", to=player.user, **{"from": {"name": "Pat"}})
    (call,) = requests(stack, player.tokens["voip", None])
    assert type_and_topic(call) == ("voip", f"{BUNDLE}.voip")
    assert (call["headers"]["apns-priority"], call["headers"]["apns-expiration"]) == ("10", "0")
    assert call["body"] == {"aps": {"content-available": 1}, "data": {"call": "c-7"}, "caller": "Pat"}


def test_a_broadcast_reaches_its_channel(stack, happen):
    stack.forget_requests()
    environment = {**stack.environment, **stack.env, "APNS_CHANNELS_URL": stack.env["APNS_URL"]}
    created = subprocess.run([stack.product("pushctl"), "channels", "create", "--app", APP, "--environment", "production"],
                             env=environment, capture_output=True, text=True, timeout=60)
    assert created.returncode == 0, created.stderr
    channel = created.stdout.split()[-1]
    happen("match.scored", "2026-03-01T10:20:00Z", match="m-9", players=[], score={"home": 3, "away": 1}, channel=channel)

    def sent():
        return [r for r in stack.requests("apns") if r["headers"].get("apns-channel-id") == channel]
    (broadcast,) = eventually(sent, 60, "the broadcast")
    assert broadcast["status"] == 200, broadcast
    assert broadcast["headers"]["apns-push-type"] == "liveactivity"
    assert "apns-topic" not in broadcast["headers"]
    assert broadcast["body"]["aps"]["content-state"] == {"home": 3, "away": 1}
    assert broadcast["body"]["aps"]["event"] == "update"
