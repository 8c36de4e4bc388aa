"""The operations of the chaos bench and its history files. Needs no stack."""

import collections
import dataclasses
import itertools
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "deploy" / "local" / "lib"))

from chaos_history import FaultSpan, History, Operation, Request, Run  # noqa: E402
from chaos_history_reader import read_history, restored  # noqa: E402
from chaos_people import APPS, CROWD, People  # noqa: E402
from chaos_snapshot import find_leaks  # noqa: E402
from chaos_workload import EVENTS, LIFETIMES, REQUESTS, Events, requests  # noqa: E402

LONG = 3000


@pytest.fixture
def secret(tmp_path) -> pathlib.Path:
    path = tmp_path / "bearer"
    path.write_text("secret\n")
    return path


@pytest.fixture
def people(secret) -> People:
    return People(7, secret)


def requests_of(people: People, seed: int, app: str, count: int = LONG) -> list:
    return list(itertools.islice(requests(people, seed, people.apps[app]), count))


def test_equal_seeds_give_equal_operations_in_any_order(secret):
    first, second = People(7, secret), People(7, secret)
    events = list(itertools.islice(Events(first, 71), 500))
    # The second publisher calls a crowd first, and asks for its events backwards.
    other = Events(second, 71)
    crowd = other.crowd("baolife", "crowd.called", 0)
    assert [other.event(number) for number in reversed(range(500))] == events[::-1]
    assert crowd == Events(first, 71).crowd("baolife", "crowd.called", 0)
    assert [event.body(100) for event in events] == [other.event(number).body(100) for number in range(500)]
    # The second run takes the apps in another order.
    found = {app: requests_of(first, 7, app) for app in APPS}
    assert {app: requests_of(second, 7, app) for app in reversed(APPS)} == found


def test_other_seeds_give_other_operations(people, secret):
    first, second = Events(people, 71), Events(people, 72)
    assert [first.event(number).key for number in range(50)] != [second.event(number).key for number in range(50)]
    assert requests_of(people, 7, "baolife", 50) != requests_of(people, 8, "baolife", 50)
    assert People(8, secret).run != people.run


def test_events_have_every_kind_in_every_app_with_its_share(people):
    events = list(itertools.islice(Events(people, 71), LONG))
    assert {(event.app, event.type) for event in events} == {
        (app, type) for app in APPS for type in EVENTS if type != "moving"}
    assert len({event.id for event in events}) == len({event.text for event in events}) == LONG
    assert sum(event.type == "note.once" for event in events) / LONG == pytest.approx(0.1, abs=0.03)
    may_expire = [event for event in events if event.type in ("note.plain", "note.once")]
    expiring = [event for event in events if event.expires_after is not None]
    assert len(expiring) / len(may_expire) == pytest.approx(0.1, abs=0.03)
    assert {event.expires_after for event in expiring} == set(LIFETIMES)
    assert all(event.type in ("note.plain", "note.once") for event in expiring)
    assert any(event.twice for event in events) and any(event.retried for event in events)
    assert not any(event.twice or event.retried for event in events if event.type == "note.once")
    assert all((event.due_after is not None) == (event.type == "note.scheduled") for event in events)


def test_steady_recipients_keep_their_phones(people):
    lasting = {phone.users[0] for app in people.apps.values() for phone in [
        *app.steady, *app.capped, *app.waiting, *app.quiet, *app.digesting]}
    for event in itertools.islice(Events(people, 71), LONG):
        assert event.users and event.steady == lasting.issuperset(event.users)


def test_body_has_the_times_of_its_publish(people):
    events = list(itertools.islice(Events(people, 71), LONG))
    scheduled = json.loads(next(event for event in events if event.due_after).body(0))
    assert "1970-01-01T00:00:00" <= scheduled["data"]["at"] <= "1970-01-01T00:00:12+00:00"
    event = next(event for event in events if event.expires_after == 2)
    assert json.loads(event.body(10))["expirytime"] == "1970-01-01T00:00:12.000+00:00"


def test_crowds_and_campaigns(people):
    crowd = Events(people, 71).crowd("baolife", "crowd.called", 0)
    assert len(set(crowd.users)) == CROWD == len(json.loads(crowd.body(0))["data"]["who"])
    campaign = Events(people, 71).crowd("baolife", "campaign.started", 1)
    assert campaign.users == () and "who" not in json.loads(campaign.body(0))["data"]
    assert campaign.id != crowd.id


@pytest.mark.parametrize("app", APPS)
def test_requests_have_every_kind_and_follow_the_owner(people, app):
    found = requests_of(people, 7, app)
    counts = collections.Counter(one.kind for one in found)
    assert counts.keys() == REQUESTS.keys()
    owners = {phone.token: phone.users[0] for phone in people.apps[app].moving}
    wants = {phone.token: True for phone in people.apps[app].choosing}
    for before, one in zip([None, *found], found):
        token = one.phone.token
        assert one.user in one.phone.users and one.phone.app == app
        match one.kind:
            case "takeover":
                assert one.user != owners[token]
                owners[token] = one.user
            case "sign-out":
                assert one.user == owners[token]
            case "preference":
                assert one.wants != wants[token]
                wants[token] = one.wants
            case "erasure":
                assert (before.kind, before.user) == ("registration", one.user)
    erased = [one.user for one in found if one.kind == "erasure"]
    assert len(erased) == len(set(erased))


# History files


def operation(result="ok", **members) -> Operation:
    return Operation("published", result, 100.0, 100.5, "baolife", "e1", "note.plain", ("u1",), **members)


def test_reader_returns_the_operations_that_the_writer_has_written(tmp_path):
    history = History(tmp_path / "history.jsonl")
    for result in ("ok", "failed", "unknown"):
        one = operation(result, expires=102.0)
        history.invoke(one)
        history.add(one)
    history.add(operation(steady=True))
    history.note("skipped", fault="rules-killed")
    history.add(FaultSpan("rules-killed", 1, 2, None, choices={"service": "rules"}, missing=("VICTIM down",)))
    history.close()
    found = read_history(tmp_path / "history.jsonl")
    assert found == history.run
    assert [one.number for one in found.operations] == [1, 2, 3, 0]


def test_reader_returns_an_operation_without_a_result_as_unknown(tmp_path):
    history = History(tmp_path / "history.jsonl")
    done, pending = operation(), operation("ok")
    history.invoke(done)
    history.invoke(pending)
    history.add(done)
    history.close()
    # The process ended while it wrote a line.
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"record": "opera')
    found = read_history(tmp_path / "history.jsonl").operations
    assert [(one.number, one.result, one.ended) for one in found] == [(1, "ok", 100.5), (2, "unknown", float("inf"))]


def test_run_is_restored_from_its_json_form():
    run = Run(
        operations=[operation()], faults=[FaultSpan("rules-killed", 1, 2, 3.5)], phases={"bulk": (1, 2)},
        requests=[Request("apns", "t", "e1", "plain", 1, None, False)], announced=[("registered", "u1", "d1")],
        summaries=[("u1", 2)], undrained=("1 digests",), discards={"expired": 2})
    assert restored(Run, json.loads(json.dumps(dataclasses.asdict(run)))) == run
    with pytest.raises(KeyError):
        restored(Run, {"surprise": 1})


def test_find_leaks_finds_secrets_in_logs(tmp_path):
    token, text, key = "ab" * 32, "text-71-3-0123456789ab", "c2VjcmV0LWtleS1vZi1hLXJ1bg=="
    (tmp_path / "rules.log").write_text(f'{{"token": "{token}"}}\n')
    (tmp_path / "feedback.log").write_text(f"body={text}.\n")
    (tmp_path / "fcm-sender.log").write_text(f"Authorization: Bearer {key}\n")
    (tmp_path / "clean.log").write_text(f"token abab… {token[:12]}\n")
    secrets = {"token": {token}, "text": {text}, "key": {key}}
    assert find_leaks(tmp_path, secrets) == [
        ("fcm-sender.log", "key"), ("feedback.log", "text"), ("rules.log", "token")]
