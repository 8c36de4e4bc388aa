"""Revocations of notifications that phones show: a clear command removes every copy, within the budget."""

import json
import uuid

import pytest
from local_stack import eventually, sql
from test_revocations import explained
from test_token_deactivation import script
from unsend import (APP, clear_commands, gone, operator_key, person, post, publish, shown, survivors, tell)


@pytest.fixture(scope="module")
def key(stack) -> str:
    return operator_key(stack)


def owner(stack, phones) -> tuple[str, str, str]:
    """A user with an iPhone and an Android phone: (user, APNs token, FCM token)."""
    user, token = person(stack, phones)
    android = uuid.uuid4().hex
    phones(APP, user, android, platform="android")
    return user, token, android


def show(stack, user: str, *tokens: str) -> str:
    """Notifies a user and waits until the phones show one more notification; returns the event."""
    before = [len(shown(stack, token)) for token in tokens]
    event = tell(stack, user)
    eventually(lambda: [len(shown(stack, token)) for token in tokens] == [count + 1 for count in before],
               what="the notification on each phone")
    eventually(lambda: stack.is_answered(event), what="the outcomes")
    return event


def cleared(requests: list[dict]) -> list[list[str]]:
    """The identifiers of each command, by provider."""
    commands = []
    for request in requests:
        body = request["body"]
        commands.append(body["data"]["heliograph_clear"] if "data" in body
                        else json.loads(body["message"]["data"]["heliograph_clear"]))
    return commands


def test_a_shown_notification_leaves_both_phones_of_its_user(stack, phones, key):
    user, apple, android = owner(stack, phones)
    event = show(stack, user, apple, android)
    kept = show(stack, user, apple, android)
    other, elsewhere = person(stack, phones)
    show(stack, other, elsewhere)
    wrong = sql(stack, "SELECT notification FROM rules.decision JOIN rules.event ON event.key = decision.event "
                       "WHERE event.id = :'event'", event=event)
    gone(stack, "shown on iOS and Android", lambda: post(stack, key, {"app": APP, "event": event}),
         lambda: len(shown(stack, apple)) == 1 and len(shown(stack, android)) == 1)
    assert len(shown(stack, apple, android, elsewhere)) == 3
    requests = clear_commands(stack, apple, android, elsewhere)
    assert [(request["provider"], request["token"]) for request in requests] == [("apns", apple), ("fcm", android)]
    assert cleared(requests) == [[wrong], [wrong]]
    headers = requests[0]["headers"]
    assert (headers["apns-push-type"], headers["apns-priority"]) == ("background", "5")
    assert requests[0]["body"]["aps"] == {"content-available": 1}
    assert requests[1]["body"]["message"]["android"]["priority"] == "NORMAL"
    eventually(lambda: explained(stack, event).count("accepted") == 4, what="the outcomes of the command")
    assert f"(cleared)  {user}  {wrong}  clear command" in explained(stack, event)
    assert "(cleared)" not in explained(stack, kept)
    # A repeat sends nothing.
    assert post(stack, key, {"app": APP, "event": event})[0] == 200
    show(stack, user, apple, android)
    assert len(clear_commands(stack, apple, android)) == 2


def test_a_push_in_flight_is_cleared_after_its_acceptance(stack, phones, key):
    user, token = person(stack, phones)
    # The phone shows it at once; the sender gets the answer three seconds later.
    script(stack, provider="apns", token=token, status=200, delay_ms=3000, count=1)
    event = tell(stack, user)
    eventually(lambda: len(shown(stack, token)) == 1, what="the notification")
    gone(stack, "in flight (answered after 3 s)", lambda: post(stack, key, {"app": APP, "event": event}),
         lambda: shown(stack, token) == [])
    assert len(survivors(stack, token)) == len(clear_commands(stack, token)) == 1


def test_a_burst_is_one_command_and_the_budget_is_kept(stack, phones, key):
    user, token = person(stack, phones)
    events = [show(stack, user, token) for _ in range(8)]
    def take_back(*chosen: str) -> None:
        for event in chosen:
            assert post(stack, key, {"app": APP, "event": event})[0] == 202
    gone(stack, "five shown notifications in a burst", lambda: take_back(*events[:5]),
         lambda: len(shown(stack, token)) == 3)
    commands = cleared(clear_commands(stack, token))
    assert len(commands) <= 2 and len(commands[-1]) == 5
    # Further bursts use up the budget of three commands in an hour; the next waits.
    rest = events[5:]
    while (sent := len(clear_commands(stack, token))) < 3:
        take_back(rest.pop(0))
        eventually(lambda sent=sent: len(clear_commands(stack, token)) == sent + 1, what="the next command")
    waiting = rest[0]
    take_back(*rest)
    eventually(lambda: "the clear command waits since" in explained(stack, waiting), what="the wait")
    assert len(clear_commands(stack, token)) == 3
    assert len(shown(stack, token)) == len(rest)
    # An hour later.
    sql(stack, "UPDATE rules.clear_command SET due_at = now(), sent_at = '{}' WHERE user_id = :'user'", user=user)
    eventually(lambda: shown(stack, token) == [], what="an empty screen")
    assert len(clear_commands(stack, token)) == 4 and len(cleared(clear_commands(stack, token))[-1]) == 8


def test_a_user_without_devices_gets_no_command(stack, phones, key):
    user, token = person(stack, phones)
    event = show(stack, user, token)
    phones(APP, user, token, verb="unregister")
    assert post(stack, key, {"app": APP, "event": event})[0] == 202
    eventually(lambda: "registry skipped no-device" in explained(stack, event), what="the outcome of the command")
    assert clear_commands(stack, token) == []


def test_a_fan_out_that_phones_show_is_cleared_for_every_user(stack, phones):
    baolife = operator_key(stack, "baolife")
    run = uuid.uuid4().hex[:8]
    users = {f"unsend-{run}-{number}": uuid.uuid4().hex for number in range(20)}
    for user, token in users.items():
        phones("baolife", user, token)
    event = publish(stack, "baolife", "achievement.unlocked",
                    {"player": {"id": list(users)}, "achievement": {"id": "a", "name": "A"}})
    eventually(lambda: len(shown(stack, *users.values())) == len(users), 60, "the notification on each phone")
    gone(stack, "shown on 20 phones", lambda: post(stack, baolife, {"app": "baolife", "event": event}),
         lambda: shown(stack, *users.values()) == [])
    assert len(clear_commands(stack, *users.values())) == len(users)


def test_clear_commands_leave_no_gap_in_the_census(stack):
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.census_gap WHERE event LIKE 'unsend-%'") == "0", 90,
               "a census without gaps")
    assert sql(stack, "SELECT count(*) FROM rules.clear_command WHERE dead_at IS NOT NULL") == "0"
