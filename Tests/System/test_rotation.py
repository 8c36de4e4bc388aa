"""Keys are replaced while events arrive: no process restarts, and each event is pushed once.

The keys of providers are replaced in `test_sender_restarts.py`, passwords in `RotationTests`. deploy/operations/hardening.md
describes the rotations.
"""

import base64
import contextlib
import os
import pathlib
import re
import threading
import uuid

from local_stack import eventually, sql
from test_monitoring import APP, TYPE
from test_token_deactivation import requests_of
from upstream import chat_event

STAGES = ("rules", "token-registry", "apns-sender", "fcm-sender", "feedback", "events-api")


def replace(path: pathlib.Path, text: str) -> None:
    """Writes a secret's file anew, as the kubelet does: readers see the former file or the new one."""
    new = path.with_name(path.name + ".rotated")
    new.write_text(text)
    new.chmod(0o600)
    os.replace(new, path)


@contextlib.contextmanager
def events_of(stack, user: str):
    """Publishes an event to a user five times a second. The list has their ids."""
    stop, sent = threading.Event(), []

    def publish() -> None:
        with stack.channel() as channel:
            while not stop.wait(0.2):
                event = str(uuid.uuid4())
                channel.basic_publish("events", f"{APP}.{TYPE}", chat_event(user, event))
                sent.append(event)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join(30)


@contextlib.contextmanager
def without_loss(stack, phones):
    """Events during the block: each one is pushed once, and the processes are the same at the end."""
    user, token = f"r-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    pids = {service: stack.service("pid", service) for service in STAGES}
    with events_of(stack, user) as sent:
        yield user, token
        # Some of them after the rotation.
        count = len(sent)
        eventually(lambda: len(sent) > count + 5, 30, "events after the rotation")
    eventually(lambda: all(stack.is_answered(event) for event in sent[-5:]), 60, "the last outcomes")
    eventually(lambda: len(requests_of(stack, token)) >= len(sent), 60, "all pushes")
    assert len(requests_of(stack, token)) == len(sent)
    assert {service: stack.service("pid", service) for service in STAGES} == pids


def test_the_encryption_key_of_stored_tokens_changes_under_traffic(stack, phones):
    file = stack.state / "secrets" / "token-keys"
    former = file.read_text()
    key = f"k{uuid.uuid4().hex[:6]}"
    line = f"{key}:{base64.b64encode(os.urandom(32)).decode()}\n"
    log = stack.state / "log" / "token-registry.log"
    used = f"http://127.0.0.1:{stack.admin_port('token-registry')}/metrics"

    def keys() -> set[str]:
        """The keys in the metric that still encrypt a token."""
        lines = [line for line in stack.http("GET", used)[1].splitlines() if line.startswith("heliograph_registry_tokens{")]
        return {line.split('key="')[1].split('"')[0] for line in lines if float(line.rpartition(" ")[2]) > 0}

    def reads() -> int:
        return log.read_text().count("REGISTRY_TOKEN_KEYS_FILE has changed")

    with without_loss(stack, phones) as (user, _):
        for text in (former + line, line + former):
            before = reads()
            replace(file, text)
            eventually(lambda: reads() > before, 30, "the reading of the key file")
        stored = f"SELECT count(*) FROM registry.registration WHERE token NOT LIKE 'v1 {key} %' AND state = 'active'"
        eventually(lambda: sql(stack, stored) == "0", 90, "the rewriting of all tokens")
        eventually(lambda: keys() == {key}, 90, "the metric")
        replace(file, line)
        eventually(lambda: reads() > before + 1, 30, "the removal of the former key")
    # Events after the removal were pushed: their devices' tokens need only the new key.
    assert sql(stack, f"SELECT token LIKE 'v1 {key} %' FROM registry.registration WHERE user_id = '{user}'") == "t"


def test_a_signing_key_of_bearer_tokens_changes_under_traffic(stack, phones):
    file = stack.state / "credentials" / "bearer.secret"
    old = stack.bearer(APP, "rotated")
    token = uuid.uuid4().hex
    assert stack.register(APP, "rotated", token, bearer=old)[0] == 200
    with without_loss(stack, phones):
        replace(file, uuid.uuid4().hex + uuid.uuid4().hex)
        new = stack.bearer(APP, "rotated")
        eventually(lambda: stack.register(APP, "rotated", token, bearer=new)[0] == 200, 30, "tokens of the new key")
        eventually(lambda: stack.register(APP, "rotated", token, bearer=old)[0] == 401, 30, "the end of the old key")


def test_an_api_key_is_replaced_without_a_refused_event(stack, phones):
    def create() -> str:
        code, output = stack.pushctl("keys", "create", "--service", "rules", "--name", "rotation", "--app", APP,
                                     "--may", "events:publish")
        assert code == 0, output
        return re.search(r"hgk_\w+", output)[0]

    def publish(key: str) -> int:
        event = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/rotation", "type": TYPE,
                 "data": {"message": {"id": 1, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
                          "participants": ["nobody"]}}
        return stack.http("POST", f"{stack.env['EVENTS_API_URL']}/v1/events", event, {
            "Authorization": f"Bearer {key}", "Content-Type": "application/cloudevents+json"})[0]

    first, second = create(), create()
    assert publish(first) == publish(second) == 202
    with without_loss(stack, phones):
        code, output = stack.pushctl("keys", "revoke", first.split("_")[1], "--service", "rules")
        assert code == 0, output
        assert publish(second) == 202
        eventually(lambda: publish(first) == 401, 30, "the end of the first key")
        assert publish(second) == 202
