"""Revocations: wherever a notification waits, no phone gets it, and the operator sees why."""

import json
import uuid

import pytest
from local_stack import eventually, sql
from test_revocations import explained, is_revoked, metric
from test_token_deactivation import script
from unsend import (APP, DIRECT, STAFF, Stream, decisions, gone, is_decided, items, operator_key, person, post, publish,
                    revoke, revoke_and_wait, shown, survivors, tell)

CAMPAIGN = "SELECT state FROM registry.campaign WHERE notification LIKE '%' || :'event' || '%'"


def test_a_notification_held_by_quiet_hours_is_never_pushed(stack, phones):
    hour = int(sql(stack, "SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int"))
    quiet = {"start": f"{hour:02}:00", "end": f"{(hour + 2) % 24:02}:00"}
    user, token = person(stack, phones, settings={"zone": "UTC", "quiet_hours": quiet})
    event = tell(stack, user)
    eventually(lambda: is_decided(stack, event, "hold"), what="the hold")
    done = revoke_and_wait(stack, "held", "--event", event, "--reason", "wrong text")
    assert done["revoked"]["held"] == 1 and done["revoked"]["inbox_items"] == 1
    assert decisions(stack, event) == {"hold quiet-hours", "drop revoked"}
    assert "wrong text" in explained(stack, event) and "(revoked) taken back" in explained(stack, event)
    assert sql(stack, "SELECT count(*) FROM rules.held WHERE user_id = :'user'", user=user) == "0"
    assert survivors(stack, token) == []


def test_a_scheduled_notification_is_never_pushed(stack, phones):
    user, token = person(stack, phones)
    at = sql(stack, "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '8 seconds', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    event = publish(stack, APP, DIRECT, {"users": [user], "content": {"body": "Later"}, "at": at})
    eventually(lambda: is_decided(stack, event, "hold"), what="the hold")
    revoke_and_wait(stack, "scheduled", "--event", event)
    # A notification to the same phone at the same time arrives, so the time has passed.
    later = publish(stack, APP, DIRECT, {"users": [user], "content": {"body": "Control"}, "at": at})
    eventually(lambda: stack.is_answered(later), 60, "the notification that is not revoked")
    assert [request["body"]["aps"]["alert"] for request in survivors(stack, token)] == [{"body": "Control"}]
    assert decisions(stack, event) == {"hold scheduled", "drop revoked"}


def test_an_entry_leaves_its_digest(stack, phones):
    # This app has no credentials for APNs.
    manager, token = person(stack, phones, "monolite-hr", platform="android")
    def submit(name: str) -> str:
        return publish(stack, "monolite-hr", "request.submitted", {
            "request": {"id": f"r-{uuid.uuid4()}", "kind": "k"}, "worker": {"id": "w", "name": name},
            "manager": {"id": manager}})
    wrong, right = submit("Wrong"), submit("Right")
    for event in (wrong, right):
        eventually(lambda event=event: is_decided(stack, event, "digest"), what="the gathering")
    done = revoke_and_wait(stack, "digest", "--event", wrong, app="monolite-hr")
    assert done["revoked"]["gathered"] == 1
    sql(stack, "UPDATE rules.digest SET close_at = now(), planned_at = now() - interval '2 days' WHERE user_id = :'user'",
        user=manager)
    digest = eventually(lambda: survivors(stack, token), 60, "the digest")
    assert len(digest) == 1 and '"count": "1"' in json.dumps(digest[0]["body"]), digest
    assert decisions(stack, wrong) == {"digest gathered", "drop revoked"}


def test_a_fan_out_stops_for_the_rest_and_its_queued_pushes_are_skipped(stack, phones):
    run = uuid.uuid4().hex[:8]
    users = [f"unsend-{run}-{number:04}" for number in range(STAFF)]
    tokens = {users[0]: uuid.uuid4().hex, users[-1]: uuid.uuid4().hex}
    for user, token in tokens.items():
        phones("baolife", user, token)
    # A step moves the fan-out ahead, so that it is in progress.
    sql(stack, """
        CREATE FUNCTION rules.pause_fan_out() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.due_at = now() + interval '1 hour'; RETURN NEW; END $$;
        CREATE TRIGGER pause_fan_out BEFORE UPDATE ON rules.crowd FOR EACH ROW
        WHEN (OLD.decided IS NOT NULL AND NEW.decided IS NULL AND NEW.due_at IS NOT NULL)
        EXECUTE FUNCTION rules.pause_fan_out()""")
    stack.service("stop", "apns-sender")
    try:
        event = publish(stack, "baolife", "achievement.unlocked",
                        {"player": {"id": users}, "achievement": {"id": "a", "name": "A"}})
        state = ("SELECT told FROM rules.crowd JOIN rules.event ON event.key = crowd.event "
                 "WHERE event.id = :'event' AND decided IS NULL")
        eventually(lambda: sql(stack, state, event=event), 60, "the first step")
        assert "in progress: 500 users decided" in explained(stack, event)
        done = revoke_and_wait(stack, "fan-out", "--event", event, app="baolife")
        assert done["revoked"] == {"held": 0, "gathered": 0, "fan_outs": 1, "pushes": 500, "shown": 0,
                                   "inbox_items": 500}
        eventually(lambda: "drop revoked" in decisions(stack, event), 30, "the end of the fan-out")
    finally:
        sql(stack, "DROP TRIGGER pause_fan_out ON rules.crowd; DROP FUNCTION rules.pause_fan_out()")
        stack.service("start", "apns-sender")
    eventually(lambda: stack.is_answered(event) or is_revoked(stack, event), 60, "the outcome of the first step")
    eventually(lambda: stack.depth("apns-sender.pushes.interactive.baolife") == 0, 60, "an empty queue")
    assert survivors(stack, *tokens.values()) == []
    assert sql(stack, "SELECT count(*) FROM rules.decision JOIN rules.event ON event.key = decision.event "
                      "WHERE event.id = :'event'", event=event) == "501"


def test_a_campaign_is_cancelled_and_its_queued_pushes_are_skipped(stack, phones):
    run = uuid.uuid4().hex[:8]
    tokens = [uuid.uuid4().hex for _ in range(30)]
    for number, token in enumerate(tokens):
        phones(APP, f"unsend-{run}-{number:02}", token)
    sql(stack, "INSERT INTO registry.membership (app, kind, name, user_id, active, at) SELECT :'app', 'tag', :'run', "
               "'unsend-' || :'run' || '-' || lpad(n::text, 2, '0'), true, now() FROM generate_series(0, 29) AS n",
        app=APP, run=run)
    def tell_tag() -> str:
        return publish(stack, APP, DIRECT, {"tag": run, "content": {"title": "Wrong", "body": "x"}})
    queue = f"apns-sender.pushes.bulk.{APP}"
    stack.service("stop", "apns-sender")
    try:
        event = tell_tag()
        eventually(lambda: sql(stack, CAMPAIGN, event=event) == "done", 60, "the end of the campaign")
        assert stack.depth(queue) > 0
        assert len(revoke_and_wait(stack, "campaign", "--event", event)["campaigns"]) == 1
    finally:
        stack.service("start", "apns-sender")
    eventually(lambda: stack.depth(queue) == 0, 60, "an empty queue")
    # A campaign that an operator has paused, before its first push.
    sql(stack, "CREATE FUNCTION registry.pause_campaign() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
               "NEW.state = 'paused'; RETURN NEW; END $$; CREATE TRIGGER pause_campaign BEFORE INSERT ON registry.campaign "
               "FOR EACH ROW EXECUTE FUNCTION registry.pause_campaign()")
    try:
        event = tell_tag()
        eventually(lambda: sql(stack, CAMPAIGN, event=event) == "paused", 60, "the paused campaign")
        revoke_and_wait(stack, "paused campaign", "--event", event)
        eventually(lambda: sql(stack, CAMPAIGN, event=event) == "cancelled", 30, "the cancelled campaign")
    finally:
        sql(stack, "DROP TRIGGER pause_campaign ON registry.campaign; DROP FUNCTION registry.pause_campaign()")
    # Another push comes after them.
    control, token = person(stack, phones)
    later = publish(stack, APP, DIRECT, {"users": [control], "content": {"body": "Control"}, "lane": "bulk"})
    eventually(lambda: stack.is_answered(later), 60, "the notification that is not revoked")
    assert survivors(stack, *tokens) == [] and len(survivors(stack, token)) == 1


def test_a_push_kept_by_a_paused_route_is_skipped(stack, phones):
    user, token = person(stack, phones)
    stack.service("stop", "provider-simulator")
    try:
        event = tell(stack, user)
        route = ("heliograph_route_open{", f'app="{APP}"', 'environment="production"')
        eventually(lambda: metric(stack, *route) == 0, 60, "a paused route")
        done = revoke_and_wait(stack, "paused route", "--event", event)
        assert done["revoked"]["pushes"] == 1
    finally:
        stack.service("start", "provider-simulator")
    eventually(lambda: is_revoked(stack, event), 180, "the outcome")
    assert survivors(stack, token) == []


def test_a_notification_in_the_queue_of_the_registry_is_skipped(stack, phones):
    user, token = person(stack, phones)
    stack.service("stop", "token-registry")
    try:
        event = tell(stack, user)
        eventually(lambda: is_decided(stack, event, "push"), what="the decision")
        done = revoke_and_wait(stack, "registry's queue", "--event", event)
        assert done["revoked"]["pushes"] == 1
    finally:
        stack.service("start", "token-registry")
    eventually(lambda: is_revoked(stack, event), 60, "the outcome")
    assert survivors(stack, token) == []


def test_a_push_in_a_retry_level_is_skipped(stack, phones):
    user, token = person(stack, phones)
    script(stack, provider="apns", token=token, status=502, body="", count=1)
    event = tell(stack, user)
    eventually(lambda: len(survivors(stack, token)) == 1, what="the request that is refused")
    notification = sql(stack, "SELECT notification FROM rules.decision WHERE user_id = :'user'", user=user)
    revoke_and_wait(stack, "retry level", "--notification", notification, "--user", user)
    # The retry level returns the push after half a minute.
    eventually(lambda: is_revoked(stack, event), 120, "the outcome")
    assert [request["status"] for request in survivors(stack, token)] == [502]


def test_the_inbox_its_stream_and_the_badge_lose_the_notification(stack, phones):
    user, token = person(stack, phones)
    bearer = stack.bearer(APP, user)
    first = Stream(stack, bearer)
    events = [tell(stack, user)]
    kind, position, kept = first.next()
    assert kind == "item"
    events.append(tell(stack, user))
    eventually(lambda: len(items(stack, bearer)) == 2, what="two items")
    for event in events:
        eventually(lambda event=event: stack.is_answered(event), what="the outcomes")
    wrong = next(id for id in items(stack, bearer) if id != kept)
    # A stream that has not reported an item when it is revoked reports the removal alone.
    assert first.next()[::2] == ("item", wrong)
    removals = []
    gone(stack, "stream, with the start of pushctl", lambda: revoke(stack, "--event", events[1]),
         lambda: removals.append(first.next()[::2]) or removals == [("removed", wrong)])
    done = revoke_and_wait(stack, "inbox", "--event", events[1])
    assert done["revoked"]["inbox_items"] == 1
    assert items(stack, bearer) == [kept]
    # So does one that continues after the first item.
    first.response.close()
    stream = Stream(stack, bearer, after=position)
    assert stream.next()[::2] == ("removed", wrong)
    events.append(tell(stack, user))
    kind, _, third = stream.next()
    stream.response.close()
    assert kind == "item" and third not in (kept, wrong)
    revoke_and_wait(stack, "inbox", "--event", events[0])
    def badges() -> list[int]:
        sent = [request["body"]["aps"] for request in stack.requests("apns") if request.get("token") == token]
        # Clear commands have neither an alert nor a badge.
        return [aps["badge"] for aps in sent if "badge" in aps and "alert" not in aps]
    # Without unread items the badge is cleared.
    gone(stack, "badge, with the start of pushctl", lambda: revoke(stack, "--event", events[2]),
         lambda: badges()[-1:] == [0])
    assert items(stack, bearer) == []


def test_kept_inbox_items_stay(stack, phones):
    user, token = person(stack, phones)
    stack.service("stop", "apns-sender")
    try:
        event = tell(stack, user)
        eventually(lambda: is_decided(stack, event, "push"), what="the decision")
        revoke_and_wait(stack, "sender's queue", "--event", event, "--inbox", "keep")
    finally:
        stack.service("start", "apns-sender")
    eventually(lambda: is_revoked(stack, event), 60, "the outcome")
    assert survivors(stack, token) == []
    assert len(items(stack, stack.bearer(APP, user))) == 1


@pytest.fixture(scope="module")
def key(stack) -> str:
    return operator_key(stack)


def test_bad_input_has_a_clear_answer_and_no_effect(stack, phones, key):
    user, token = person(stack, phones)
    event = tell(stack, user)
    eventually(lambda: stack.is_answered(event), what="the push")
    for app, name in ((APP, f"never-{uuid.uuid4()}"), ("baolife", event)):
        code, output = stack.pushctl("revoke", "--app", app, "--event", name)
        assert code == 66 and "has no event" in output and "--ahead" in output, output
    code, output = stack.pushctl("revoke", "--app", APP, "--notification", str(uuid.uuid4()))
    assert code == 66 and "has no notification" in output, output
    for arguments in ((), ("--event", event, "--notification", str(uuid.uuid4())), ("--notification", "x"),
                      ("--event", event, "--inbox", "drop"), ("--event", event, "--reason", "")):
        assert stack.pushctl("revoke", "--app", APP, *arguments)[0] == 64, arguments
    for body, status in (({"app": APP, "event": f"never-{uuid.uuid4()}"}, 404), ({"app": "baolife", "event": event}, 403),
                         ({"app": APP}, 400), ({"app": APP, "event": event, "inbox": "drop"}, 400)):
        assert post(stack, key, body)[0] == status, body
    code, output = stack.pushctl("revoke", "--app", APP, "--event", event, "--dry-run", "--json")
    assert code == 0 and json.loads(output)["would_revoke"] == {
        "held": 0, "gathered": 0, "fan_outs": 0, "pushes": 0, "shown": 1, "inbox_items": 1}, output
    assert sql(stack, "SELECT count(*) FROM rules.revocation WHERE event_id = :'event'", event=event) == "0"
    # The provider has accepted it: the app removes it from the phone, and the inbox item goes.
    body = {"app": APP, "event": event, "reason": "late"}
    status, first = post(stack, key, body)
    assert status == 202 and first["requested_by"] == "support desk" and first["reason"] == "late"
    eventually(lambda: post(stack, key, body)[1]["ended_at"], 30, "the revocation")
    status, second = post(stack, key, body | {"reason": "again"})
    assert status == 200 and second["id"] == first["id"] and second["reason"] == "late"
    assert sql(stack, "SELECT count(*) FROM rules.revocation WHERE event_id = :'event'", event=event) == "1"
    eventually(lambda: shown(stack, token) == [], 30, "an empty screen")
    assert items(stack, stack.bearer(APP, user)) == []


def test_an_event_revoked_ahead_is_dropped_when_it_arrives(stack, phones):
    user, token = person(stack, phones)
    event = f"unsend-{uuid.uuid4()}"
    revoke_and_wait(stack, "before its notification", "--event", event, "--ahead")
    tell(stack, user, event)
    control = tell(stack, user)
    eventually(lambda: stack.is_answered(control), what="the push that is not revoked")
    eventually(lambda: decisions(stack, event) == {"drop revoked"}, what="the decision")
    assert len(survivors(stack, token)) == 1


def test_a_killed_rules_process_leaves_no_revocation_half_done(stack, phones):
    user, token = person(stack, phones)
    stack.service("stop", "apns-sender")
    try:
        event = tell(stack, user)
        eventually(lambda: is_decided(stack, event, "push"), what="the decision")
        stack.service("kill", "rules")
        assert revoke(stack, "--event", event)["ended_at"] is None
        stack.service("start", "rules")
        stack.service("ready", "rules")
        eventually(lambda: revoke(stack, "--event", event)["ended_at"], 60, "the revocation")
    finally:
        stack.service("start", "apns-sender")
    eventually(lambda: is_revoked(stack, event), 60, "the outcome")
    assert survivors(stack, token) == []


def test_a_revoked_notification_leaves_no_gap_in_the_census(stack):
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.census_gap WHERE event LIKE 'unsend-%'") == "0", 90,
               "a census without gaps")
    assert sql(stack, "SELECT count(*) FROM rules.revocation WHERE due_at IS NOT NULL") == "0"
