"""Recorded events: `pushctl rules diff --recorded` on a running stack, and what erasure leaves of them."""

import datetime
import json
import os
import re
import subprocess
import uuid

import pytest

from local_stack import ROOT, cloud_event, eventually, sql

APP = "family-portal"
RULES = str(ROOT / "Services" / "Rules" / "RuleSets" / f"{APP}.yaml")


@pytest.fixture(scope="module")
def recording(stack):
    """The stack, with one app that records for a day."""
    apps = stack.state / "apps.yaml"
    before = apps.read_text()
    apps.write_text(before.replace(f"  {APP}:\n", f"  {APP}:\n    recording: {{ days: 1 }}\n", 1))
    stack.restart_all("rules")
    yield stack
    apps.write_text(before)
    stack.restart_all("rules")


def publish(stack, *users: str) -> str:
    event = f"recorded-{uuid.uuid4()}"
    data = {"message": {"id": event, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
            "participants": list(users), "text": "x"}
    stack.publish(f"{APP}.chat.message.created", cloud_event("chat.message.created", data, event),
                  content_type="application/cloudevents+json")
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.event WHERE id = :'id'", id=event) == "1", what="decision")
    return event


def diff(stack, *options: str, url: str | None = None) -> subprocess.CompletedProcess:
    environment = {**os.environ, **stack.env}
    if url:
        environment["DATABASE_URL"] = url
    return subprocess.run([stack.product("pushctl"), "rules", "diff", RULES, *options], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def quiet_now() -> str:
    """Quiet hours from an hour ago until in two hours."""
    now = datetime.datetime.now(datetime.timezone.utc)
    start, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=2)
    return f"quiet={start:%H:%M}-{end:%H:%M}"


def test_a_branch_is_compared_by_recorded_events_and_all_decisions_are_reproduced(recording):
    users = [f"recorded-{uuid.uuid4()}" for _ in range(3)]
    event = publish(recording, *users)
    same = diff(recording, RULES, "--recorded", "1h")
    assert same.returncode == 0 and "no difference" in same.stdout, same
    assert re.search(r"^[1-9]\d* decisions reproduced, 0 differ$", same.stdout, re.MULTILINE), same.stdout
    done = diff(recording, "--recorded", "1h", "--branch", quiet_now(), "--json")
    assert done.returncode == 1, done
    answer = json.loads(done.stdout)
    assert answer["differing"] == [] and answer["reproduced"] >= 3 and answer["events"] >= 1, answer
    later = [one for one in answer["differences"] if one["event"] == event]
    assert {one["user"] for one in later} == set(users) and {one["kind"] for one in later} == {"later"}, later
    lines = diff(recording, "--recorded", "1h", "--branch", quiet_now()).stdout
    assert "later: " in lines and " users" in lines, lines


def test_a_login_of_the_group_reads_recordings_and_nothing_else(recording):
    publish(recording, f"recorded-{uuid.uuid4()}")
    sql(recording, "DROP ROLE IF EXISTS rule_author; CREATE ROLE rule_author LOGIN PASSWORD 'author-1' IN ROLE heliograph_recordings")
    administrator = recording.env["DATABASE_URL"]
    scheme, rest = administrator.split("://", 1)
    url = f"{scheme}://rule_author:author-1@{rest.rpartition('@')[2]}"
    done = diff(recording, RULES, "--recorded", "1h", url=url)
    assert done.returncode == 0 and "reproduced" in done.stdout, done
    denied = subprocess.run([recording.product("pushctl"), "explain", "x"], capture_output=True, text=True, timeout=60,
                            env={**os.environ, **recording.env, "DATABASE_URL": url})
    assert denied.returncode not in (0, 66), denied
    sql(recording, "DROP ROLE rule_author")


def test_an_erased_user_is_in_no_recording(recording):
    user, other = f"erased-{uuid.uuid4()}", f"kept-{uuid.uuid4()}"
    publish(recording, user, other)
    publish(recording, other)
    named = "SELECT count(*) FROM rules.recording WHERE position(:'user' IN body::text) > 0"
    assert (sql(recording, named, user=user), sql(recording, named, user=other)) == ("1", "2")
    subprocess.run([recording.product("pushctl"), "devices", "erase", "--app", APP, "--user", user, "--yes"],
                   env={**os.environ, **recording.env}, capture_output=True, text=True, timeout=30, check=True)
    eventually(lambda: sql(recording, named, user=user) == "0", what="the erasure")
    assert sql(recording, named, user=other) == "1"


@pytest.mark.parametrize("options, code, words", [
    ([], 64, "--recorded or --events"),
    (["--recorded", "7"], 64, "not a duration"),
    (["--recorded", "1h", "--people", "x"], 64, "--people belongs to --events"),
    (["--recorded", "1h"], 1, "--branch"),
    (["--recorded", "1h", "--branch", "cap=3"], 1, "has no caps"),
    (["--recorded", "1h", "--branch", "sound=off"], 1, "is no change"),
    (["/nowhere", "--recorded", "1h"], 1, "/nowhere"),
])
def test_wrong_arguments_name_the_mistake(stack, options, code, words):
    done = diff(stack, *options)
    assert done.returncode == code and words in done.stderr, done


def test_an_app_without_recordings_says_so(stack):
    other = ROOT / "Services" / "Rules" / "RuleSets" / "tweet-chat.yaml"
    done = subprocess.run([stack.product("pushctl"), "rules", "diff", str(other), str(other), "--recorded", "1h"],
                          env={**os.environ, **stack.env}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "nothing is recorded" in done.stdout, done
