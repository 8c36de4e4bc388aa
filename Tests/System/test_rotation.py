"""Secrets are replaced while events arrive: no process restarts, and each event is pushed once.

The keys of providers are replaced in `test_sender_restarts.py`. deploy/operations/hardening.md describes the rotations.
"""

import base64
import contextlib
import os
import pathlib
import re
import subprocess
import threading
import uuid

import pika
import pytest
from local_stack import eventually, sql
from test_monitoring import APP, TYPE
from test_token_deactivation import requests_of
from upstream import chat_event

STAGES = ("rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback", "events-api", "webhook-sender")
WITH_DATABASE = ("rules", "token-registry", "feedback", "events-api")


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


def rabbitmqctl(stack, *arguments: str) -> str:
    """Runs rabbitmqctl, which starts a virtual machine: on a busy machine that takes many seconds."""
    return subprocess.run(
        [stack.state / "rabbitmqctl", "-q", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=True, timeout=300).stdout


def new_password(stack, kind: str, service: str) -> tuple[str, pathlib.Path, str]:
    """Creates a new password of a service. Returns it, the file with the service's URL, and that URL with it."""
    secrets, scheme = stack.state / "secrets", {"broker": "amqp", "database": "database"}[kind]
    file, password = secrets / f"{kind}-{service}", uuid.uuid4().hex
    url = secrets / f"{scheme}-url-{service}"
    changed = url.read_text().replace(file.read_text().strip(), password)
    assert password in changed
    replace(file, password)
    return password, url, changed


def test_passwords_of_the_broker_change_under_traffic(stack, phones):
    """The four steps of deploy/rabbitmq/README.md."""
    former = {service: (stack.state / "secrets" / f"amqp-url-{service}").read_text().strip() for service in STAGES}
    with without_loss(stack, phones):
        # 1. New passwords, and the definitions with them.
        urls = {service: new_password(stack, "broker", service)[1:] for service in STAGES}
        code, definitions = stack.pushctl(
            "topology", "definitions", "--apps", stack.env["HELIOGRAPH_APPS"], "--passwords", str(stack.state / "secrets"))
        assert code == 0, definitions
        # 2. The broker imports the definitions, and reads the same file at its next start.
        file = stack.state / "rabbitmq-definitions.json"
        replace(file, definitions)
        rabbitmqctl(stack, "import_definitions", str(file))
        for service, (url, text) in urls.items():
            # 3. The new URL.
            replace(url, text)
            # 4. The end of the old connections.
            rabbitmqctl(stack, "close_all_user_connections", service, "new password")
        eventually(lambda: set(rabbitmqctl(stack, "list_connections", "user").split()) >= set(STAGES), 120,
                   "a connection of each service")
    for service, url in former.items():
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            pika.BlockingConnection(pika.URLParameters(url))
    for service in STAGES:
        stack.service("ready", service)


def test_passwords_of_the_database_change_under_traffic(stack, phones):
    """The three steps of deploy/operations/postgres.md."""
    former = {service: (stack.state / "secrets" / f"database-url-{service}").read_text().strip()
              for service in WITH_DATABASE}
    of_old = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{}'"
    with without_loss(stack, phones):
        for service in WITH_DATABASE:
            password, url, text = new_password(stack, "database", service)
            # 1. The new password. psql's \password sends the same statement with a hash.
            sql(stack, f"ALTER ROLE \"{service}\" PASSWORD '{password}'")
            # 2. The new URL.
            replace(url, text)
            # 3. The end of the old connections.
            assert sql(stack, of_old.format(service)), f"{service} had no connection"
        names = "SELECT DISTINCT usename FROM pg_stat_activity"
        eventually(lambda: set(sql(stack, names).split()) >= set(WITH_DATABASE), 120, "a connection of each service")
    for service, url in former.items():
        done = subprocess.run(["psql", "-XAtqw", url, "-c", "SELECT 1"], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "password authentication failed" in done.stderr, service
    for service in WITH_DATABASE:
        stack.service("ready", service)


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
