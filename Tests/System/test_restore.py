"""A restore drill: the commands of the page "Backup and restore" on a stack of its own, and the pushes after them."""

import pathlib
import re
import subprocess
import uuid

import pytest

from conftest import ROOT, further_stack, phones_of, registering
from local_stack import cloud_event, eventually
from pages import Reader, steps
from test_erasure import erase, sql
from test_token_deactivation import states

PAGE = ROOT / "deploy" / "operations" / "backup.md"
APP, TYPE = "family-portal", "chat.message.created"


@pytest.fixture(scope="module")
def drilled(tmp_path_factory):
    with further_stack(tmp_path_factory.mktemp("restored")) as stack:
        yield stack


def major(version: str) -> int:
    return int(re.search(r"\d+", version).group())


def tell(stack, *users: str) -> str:
    """A chat message to the users."""
    event = str(uuid.uuid4())
    data = {"message": {"id": event, "text": "Dinner?", "thread_id": None}, "sender": {"id": "w", "name": "Pat"},
            "participants": list(users)}
    stack.publish(f"{APP}.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")
    return event


def pushed(stack, token: str) -> list[str]:
    """The events of a phone's pushes, in order."""
    return [one["body"]["data"]["message_id"] for one in stack.requests("apns") if one.get("token") == token]


def active(stack, user: str) -> bool:
    return "active" in states(stack, user)


def test_a_restored_database_serves_what_waited_and_obeys_repeated_sign_outs(drilled, tmp_path: pathlib.Path):
    stack = drilled
    dump = subprocess.run(["pg_dump", "--version"], capture_output=True, text=True, check=True).stdout
    if major(sql(stack, "SHOW server_version")) > major(dump):
        pytest.skip("pg_dump is older than the server")
    reader = Reader(stack.environment, tmp_path, stack.state)
    reader.run(f"export PATH='{ROOT}/.build/debug':$PATH\n. .local/env")
    make, stop, restore, registry, rest = [
        commands.replace("heliograph.dump", f"'{tmp_path}/heliograph.dump'")
        for commands, _ in steps(PAGE.read_text())]
    phones = phones_of(stack)
    keeper, leaver, erased, late, former, owner = (f"{name}-{uuid.uuid4()}" for name in (
        "keeper", "leaver", "erased", "late", "former", "owner"))
    tokens = {user: uuid.uuid4().hex * 2 for user in (keeper, leaver, erased, late, former)}
    shared = tokens[former]
    for user in (keeper, leaver, erased, former):
        phones(APP, user, tokens[user])

    reader.run(make)
    # The gap: a sign-out, a new owner, an erasure, a new phone, and an event.
    phones(APP, leaver, tokens[leaver], verb="unregister")
    phones(APP, owner, shared)
    erase(stack, erased)
    eventually(lambda: not active(stack, erased), what="the erasure")
    phones(APP, late, tokens[late])
    before = tell(stack, keeper, late)
    eventually(lambda: pushed(stack, tokens[keeper]) and pushed(stack, tokens[late]), what="the pushes before the failure")

    reader.run(stop)
    waiting = tell(stack, keeper, leaver, erased, late, former)
    reader.run(restore)
    reader.run(registry)
    assert [active(stack, user) for user in (leaver, erased, former, late)] == [True, True, True, False]
    phones = registering(stack)
    phones(APP, leaver, tokens[leaver], verb="unregister")
    phones(APP, owner, shared)
    erase(stack, erased)
    reader.run(rest)

    eventually(lambda: len(pushed(stack, tokens[keeper])) == 2, 60, "the push of the event that waited")
    phones(APP, late, tokens[late])
    after = tell(stack, keeper, leaver, erased, late, former, owner)
    eventually(lambda: pushed(stack, shared) and after in pushed(stack, tokens[late]), 60, "the pushes after the restore")
    eventually(lambda: stack.is_answered(after), what="the outcomes of the last event")
    assert pushed(stack, tokens[keeper]) == [before, waiting, after]
    assert pushed(stack, tokens[late]) == [before, after]
    assert pushed(stack, shared) == [after], "a push of the former user"
    assert [pushed(stack, tokens[user]) for user in (leaver, erased)] == [[], []]
    assert stack.depth(f"rules.events.app.{APP}.dead") == stack.depth("rules.events.dead") == 0
