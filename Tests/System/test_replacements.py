"""Events under `replace`: wherever a message waits or is shown when it is edited, each phone shows it once, with the new text."""

import datetime
import json
import pathlib
import shutil
import uuid

import pytest
from local_stack import cloud_event, eventually, sql
from test_revocations import explained, is_revoked
from test_token_deactivation import script
from unsend import APP, TYPE, Stream, decisions, is_decided, person, publish, shown, survivors

RULE_SETS = pathlib.Path(__file__).resolve().parents[2] / "Services" / "Rules" / "RuleSets"
EDITED = "chat.message.edited"


@pytest.fixture(scope="module", autouse=True)
def rules(stack, tmp_path_factory):
    """The stack with a rule file of the app that replaces the texts of edited messages."""
    folder = tmp_path_factory.mktemp("rules")
    for file in RULE_SETS.glob("*.yaml"):
        shutil.copy(file, folder)
    text = (RULE_SETS / f"{APP}.yaml").read_text()
    changes = [
        ("  chat.connection.active:\n", f"""  {EDITED}:
    about: The sender has edited a message.
    examples: [{{ message: {{ id: 123, text: Hi, thread_id: null }}, sender: {{ id: 456, name: Pat }} }}]

  chat.connection.active:
"""),
        ("rules:\n  chat-message:", f"""replace:
  - {{ event: {EDITED}, item: "message/{{{{message.id}}}}", rule: chat-message }}

rules:
  chat-message:"""),
        ("      type: chat\n", '      type: chat\n      item: "message/{{message.id}}"\n'),
    ]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / f"{APP}.yaml").write_text(text)
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


class Chat:
    """One message to one user with an iPhone and an Android phone."""

    def __init__(self, stack, phones, settings: dict | None = None):
        self.stack, self.message = stack, str(uuid.uuid4())
        self.user, self.apple = person(stack, phones, settings=settings)
        self.android = uuid.uuid4().hex
        phones(APP, self.user, self.android, platform="android")

    def data(self, text: str) -> dict:
        return {"message": {"id": self.message, "text": text, "thread_id": None}, "sender": {"id": "w", "name": "P"}}

    def send(self, text: str) -> str:
        return publish(self.stack, APP, TYPE, self.data(text) | {"participants": [self.user]})

    def edit(self, text: str, event: str | None = None) -> str:
        return publish(self.stack, APP, EDITED, self.data(text), event)

    def edit_early(self, text: str) -> tuple[str, str]:
        """Edits the message, and sends it later. Returns the ids of the edit and of the message."""
        now = datetime.datetime.now(datetime.timezone.utc)
        ids = []
        message = self.data("Old") | {"participants": [self.user]}
        for type, data, time in (
                (EDITED, self.data(text), now), (TYPE, message, now - datetime.timedelta(minutes=1))):
            ids.append(f"edit-{uuid.uuid4()}")
            body = json.loads(cloud_event(type, data, ids[-1])) | {"time": time.isoformat()}
            self.stack.publish(f"{APP}.{type}", json.dumps(body).encode(), content_type="application/cloudevents+json")
        return ids[0], ids[1]

    def show(self, text: str) -> str:
        """Sends the message and waits until both phones show it and its outcomes are known."""
        event = self.send(text)
        eventually(lambda: self.screens() == [f"P: {text}"] * 2, what="the notification on each phone")
        eventually(lambda: self.stack.is_answered(event), what="the outcomes")
        return event

    def screens(self) -> list[str]:
        """The texts that the iPhone and the Android phone show."""
        return shown(self.stack, self.apple, self.android)

    def inbox(self) -> list[tuple[str, str]]:
        """Id and text of each item."""
        bearer = self.stack.bearer(APP, self.user)
        status, answer = self.stack.http("GET", f"{self.stack.env['RULES_URL']}/v1/inbox",
                                         headers={"Authorization": f"Bearer {bearer}"})
        assert status == 200, answer
        return [(item["id"], json.dumps(item, ensure_ascii=False)) for item in answer["items"]]


def test_a_shown_message_is_edited_on_both_phones_and_in_the_inbox(stack, phones):
    chat = Chat(stack, phones)
    stream = Stream(stack, stack.bearer(APP, chat.user))
    chat.show("Dinner at six")
    [(item, _)] = chat.inbox()
    assert stream.next()[2] == item
    edited = chat.edit("Dinner at seven")
    eventually(lambda: chat.screens() == ["P: Dinner at seven"] * 2, what="the new text on each phone")
    eventually(lambda: stack.is_answered(edited), what="the outcomes")
    assert chat.screens() == ["P: Dinner at seven"] * 2
    # Two phones, the message and its replacement. The replacement is quiet.
    requests = survivors(stack, chat.apple, chat.android)
    assert len(requests) == 4, requests
    apple = [request for request in requests if request["provider"] == "apns"]
    assert [request["headers"]["apns-collapse-id"] for request in apple] == [item, item]
    assert apple[1]["body"]["aps"].get("sound") is None
    assert apple[1]["body"]["aps"]["interruption-level"] == "passive"
    [(after, text)] = chat.inbox()
    assert after == item and "Dinner at seven" in text and "six" not in text
    assert decisions(stack, edited) == {"push-quietly replacement"}
    assert "new texts for a notification that was pushed" in explained(stack, edited)
    assert stream.next()[2] == item


def test_a_repeated_or_older_edit_changes_nothing(stack, phones):
    chat = Chat(stack, phones)
    chat.show("One")
    edited = chat.edit("Two")
    eventually(lambda: chat.screens() == ["P: Two"] * 2, what="the new text")
    eventually(lambda: stack.is_answered(edited), what="the outcomes")
    before = len(survivors(stack, chat.apple, chat.android))
    chat.edit("Two", edited)
    last = chat.edit("Three")
    eventually(lambda: chat.screens() == ["P: Three"] * 2, what="the third text")
    eventually(lambda: stack.is_answered(last), what="the outcomes")
    assert len(survivors(stack, chat.apple, chat.android)) == before + 2


def test_a_held_message_is_pushed_once_with_the_new_text(stack, phones):
    hour = int(sql(stack, "SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int"))
    quiet = {"start": f"{hour:02}:00", "end": f"{(hour + 2) % 24:02}:00"}
    chat = Chat(stack, phones, settings={"zone": "UTC", "quiet_hours": quiet})
    event = chat.send("Old")
    eventually(lambda: is_decided(stack, event, "hold"), what="the hold")
    edited = chat.edit("New")
    eventually(lambda: decisions(stack, edited) == {"drop words-replaced"}, what="the decision")
    # The end of the quiet hours.
    sql(stack, "UPDATE rules.person SET settings = '{}' WHERE user_id = :'user'", user=chat.user)
    sql(stack, "UPDATE rules.held SET due_at = now() WHERE user_id = :'user'", user=chat.user)
    eventually(lambda: chat.screens() == ["P: New"] * 2, what="the notification on each phone")
    assert len(survivors(stack, chat.apple, chat.android)) == 2
    assert len(chat.inbox()) == 1 and "New" in chat.inbox()[0][1]


def test_an_edited_message_in_a_retry_level_is_pushed_once(stack, phones):
    user, token = person(stack, phones)
    chat = Chat(stack, phones)
    chat.user, chat.apple = user, token
    # The provider refuses the first push; its retry comes after the edit.
    script(stack, provider="apns", token=token, status=502, body="", count=1)
    event = chat.send("Old")
    eventually(lambda: is_decided(stack, event, "push"), what="the decision")
    eventually(lambda: any(r.get("token") == token for r in stack.requests("apns")), what="the refused request")
    chat.edit("New")
    eventually(lambda: shown(stack, token) == ["P: New"], what="the new text")
    # The retry level returns it after half a minute.
    eventually(lambda: is_revoked(stack, event), 120, "the outcome of the original")
    assert shown(stack, token) == ["P: New"]


def test_an_edit_that_arrives_before_its_message_waits_for_it(stack, phones):
    chat = Chat(stack, phones)
    edited, event = chat.edit_early("New")
    eventually(lambda: chat.screens() == ["P: New"] * 2, 60, "the new text")
    eventually(lambda: is_decided(stack, event, "push") and stack.is_answered(edited), what="the outcomes")
    assert decisions(stack, edited) <= {"push-quietly replacement", "push replacement"}


def test_an_edit_of_a_revoked_message_is_not_pushed(stack, phones):
    chat = Chat(stack, phones)
    event = chat.show("Old")
    code, output = stack.pushctl("revoke", "--app", APP, "--event", event)
    assert code == 0, output
    edited = chat.edit("New")
    eventually(lambda: decisions(stack, edited) == {"drop revoked"}, what="the decision")
    eventually(lambda: chat.screens() == [], what="empty screens")
    assert chat.inbox() == []
