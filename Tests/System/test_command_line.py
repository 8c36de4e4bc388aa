"""The command line: one JSON document from each command, exit codes, `doctor`, `status` and `tail`."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.parse
import uuid

import pytest
from local_stack import ROOT, cloud_event, eventually, sql

APP = "family-portal"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def run(stack, *arguments: str, input: str | None = None, **variables: str | None) -> subprocess.CompletedProcess:
    """Runs pushctl as the broker's administrator. A variable that is None is removed."""
    environment = {**os.environ, **stack.env, "AMQP_URL": stack.amqp_url, **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    options = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run([stack.product("pushctl"), *arguments], env=environment, capture_output=True, text=True,
                          timeout=60, **options)


def document(stack, *arguments: str, codes: tuple[int, ...] = (0,), **options) -> dict:
    done = run(stack, *arguments, "--json", **options)
    assert done.returncode in codes, (arguments, done)
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1, (arguments, done.stdout)
    answer = json.loads(done.stdout)
    check_shape(answer, arguments)
    return answer


def check_shape(value, place) -> None:
    """Members are snake_case, and times are RFC 3339 in UTC."""
    if isinstance(value, list):
        for item in value:
            check_shape(item, place)
    if isinstance(value, dict):
        for name, member in value.items():
            # The members of these come from events, providers and the reasons of decisions.
            if name in ("content", "inbox", "body", "reasons"):
                continue
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name), (place, name)
            if name.endswith("_at") and member is not None:
                assert TIME.fullmatch(member), (place, name, member)
            check_shape(member, (place, name))


def message(id: str, users: list[str]) -> bytes:
    data = {"message": {"id": id, "text": "x", "thread_id": None}, "sender": {"id": "w", "name": "P"},
            "participants": users}
    return cloud_event("chat.message.created", data, id)


def publish(stack, *users: str) -> str:
    event = f"command-line-{uuid.uuid4()}"
    stack.publish(f"{APP}.chat.message.created", message(event, list(users)), content_type="application/cloudevents+json")
    return event


def tell(stack) -> tuple[str, str]:
    """Registers a phone of a new user, and publishes an event about him. Returns both once it is answered."""
    user, token = f"command-line-{uuid.uuid4()}", uuid.uuid4().hex
    assert stack.register(APP, user, token)[0] == 200
    event = publish(stack, user)
    eventually(lambda: stack.is_answered(event), what="the answer")
    return user, event


@pytest.fixture(scope="module")
def told(stack) -> tuple[str, str]:
    """A user with a phone, and an event about him that is answered."""
    return tell(stack)


def exported(stack) -> str:
    done = subprocess.run([stack.state / "rabbitmqctl", "-q", "export_definitions", "-"], capture_output=True, text=True,
                          timeout=60, check=True)
    return done.stdout[done.stdout.index("{"):]


def test_every_command_prints_one_json_document(stack, tmp_path):
    user, event = tell(stack)
    (tmp_path / "events").write_bytes(message("preview", [user]))
    (tmp_path / "event").write_bytes(message(f"published-{uuid.uuid4()}", [user]))
    rules = str(ROOT / "Services/Rules/RuleSets/family-portal.yaml")
    created = document(stack, "keys", "create", "--service", "rules", "--name", "t", "--app", APP, "--may", "events:read",
                       "--days", "3")
    assert created["secret"] and created["expires_at"]
    missing = str(uuid.uuid4())
    commands = [
        (["topology", "verify"], lambda a: a["complete"] is True and a["problems"] == [] and a["queues"] > 20),
        (["topology", "roles"], lambda a: "apns-sender" in a["users"]),
        (["topology", "apply"], lambda a: a["queues"] > 20),
        (["migrate", "--migrations", str(ROOT / "Services")],
         lambda a: [s["schema"] for s in a["schemas"]] == ["feedback", "registry", "rules"]),
        (["publish", "--app", APP, str(tmp_path / "event")], lambda a: a["type"] == "chat.message.created"),
        (["token", "mint", "--app", APP, "--user", user], lambda a: a["token"].count(".") == 2),
        (["devices", "list", "--app", APP, "--user", user], lambda a: a["devices"][0]["state"] == "active"),
        (["devices", "counts", "--app", APP], lambda a: isinstance(a["counts"], list)),
        (["devices", "erase", "--app", APP, "--user", user], lambda a: a == {"erased": 0, "selected": 1}),
        (["devices", "fids"], lambda a: a["halts"] == []),
        (["campaigns", "list"], lambda a: isinstance(a["campaigns"], list)),
        (["explain", event, "--app", APP], lambda a: a["events"][0]["stories"][0]["outcomes"][0]["disposition"] == "accepted"),
        (["revoke", "--app", APP, "--event", event, "--dry-run"], lambda a: a["would_revoke"]["inbox_items"] == 1),
        (["revoke", "--app", APP, "--event", event, "--inbox", "keep"],
         lambda a: a["event"] == event and a["inbox"] == "keep" and a["requested_by"].startswith("pushctl as ")),
        (["rules", "counts", "--app", APP], lambda a: isinstance(a["counts"], list)),
        (["rules", "check", str(ROOT / "Services/Rules/RuleSets")], lambda a: a["files"] == 5 and a["mistakes"] == a["hints"] == []),
        (["rules", "preview", rules, "--events", str(tmp_path / "events")],
         lambda a: a["decisions"][0]["answer"] == "push" and a["decisions"][0]["requests"][0]["bytes"] > 0),
        (["rules", "diff", rules, rules, "--events", str(tmp_path / "events")], lambda a: a == {"differences": []}),
        (["dead", "list"], lambda a: isinstance(a["queues"], list)),
        (["dead", "show", "rules.census"], lambda a: isinstance(a["dead_letters"], list)),
        (["dead", "replay", "rules.census"], lambda a: isinstance(a["replayed"], int)),
        (["dead", "drop", "rules.census"], lambda a: a["dropped"] == 0),
        (["dead-rows", "list"], lambda a: isinstance(a["rows"], list)),
        (["dead-rows", "retry", "--app", "nobody"], lambda a: a == {"retried": 0}),
        (["dead-rows", "drop", "--app", "nobody"], lambda a: a == {"dropped": 0, "selected": 0}),
        (["feedback", "quarantine", "list"], lambda a: isinstance(a["total"], int)),
        (["feedback", "quarantine", "show", missing], lambda a: a["evidence"] == []),
        (["feedback", "quarantine", "release", missing], lambda a: a == {"released": 0}),
        (["feedback", "quarantine", "discard", missing], lambda a: a == {"discarded": 0}),
        (["keys", "list", "--service", "rules"], lambda a: created["id"] in [key["id"] for key in a["keys"]]),
        (["keys", "revoke", created["id"], "--service", "rules"], lambda a: a == {"revoked": created["id"]}),
        (["status"], lambda a: all(queue["consumers"] > 0 and not queue["missing"] for queue in a["queues"])
         and a["census"]["current"] and a["away"] == {"broker": None, "database": None}),
        (["app", "new", "my-app", "--folder", str(tmp_path / "my-app")],
         lambda a: a == {"app": "my-app", "folder": str(tmp_path / "my-app"), "simulated": True}),
        (["app", "check", str(tmp_path / "my-app")], lambda a: a["apps"] == ["my-app"] and a["mistakes"] == [] and a["notes"]),
        (["app", "install", str(tmp_path / "my-app"), "--apps-file", str(tmp_path / "apps.yaml"), "--rules",
          str(tmp_path / "rules")], lambda a: a == {"installed": ["my-app"]}),
    ]
    for arguments, holds in commands:
        answer = document(stack, *arguments)
        assert holds(answer), (arguments, answer)
    (tmp_path / "my-app" / "credentials" / "apns.p8").write_text("nonsense")
    for command in (["check"], ["install", "--apps-file", str(tmp_path / "apps.yaml"), "--rules", str(tmp_path / "rules")]):
        answer = document(stack, "app", command[0], str(tmp_path / "my-app"), *command[1:], codes=(1,))
        mistake = answer["mistakes"][0]
        assert mistake["file"].endswith("apns.p8") and mistake["line"] == 1 and "is not an APNs key" in mistake["problem"]
    device = document(stack, "devices", "list", "--app", APP, "--user", user)["devices"][0]["device"]
    assert document(stack, "devices", "deactivate", "--app", APP, device) == {"device": device, "deactivated": True}
    census = document(stack, "census", "--app", APP, codes=(0, 1))
    assert census["total"] == sum(state["number"] for state in census["states"])
    # Text has a header line and no escape sequence, because it is not printed on a terminal.
    text = run(stack, "devices", "list", "--app", APP, "--user", user).stdout
    assert text.splitlines()[0].split()[:3] == ["device", "provider", "environment"] and "\x1b" not in text


def test_exit_codes_tell_not_found_from_unavailable(stack):
    away = {"AMQP_URL": "amqp://a:b@127.0.0.1:1/x", "DATABASE_URL": "postgresql://a:b@127.0.0.1:1/x"}
    wrong = stack.amqp_url.replace("amqp://", "amqp://nobody-")
    cases = [
        (66, ["explain", f"unknown-{uuid.uuid4()}"], {}),
        (66, ["revoke", "--app", APP, "--event", f"unknown-{uuid.uuid4()}"], {}), (64, ["revoke", "--app", APP], {}), (66, ["campaigns", "show", str(uuid.uuid4())], {}),
        (66, ["dead", "show", "no.such.queue"], {}), (66, ["publish", "--app", "nobody", "-"], {}),
        (66, ["devices", "deactivate", "--app", APP, str(uuid.uuid4())], {}), (66, ["keys", "revoke", "nothing"], {}), (66, ["publish", "--app", APP, "/no/such/file"], {}),
        (69, ["campaigns", "list"], away), (69, ["topology", "verify"], away), (69, ["status"], away),
        (69, ["devices", "counts"], {"REGISTRY_URL": "http://127.0.0.1:1"}),
        (69, ["tail", "--app", APP], away), (77, ["topology", "verify"], {"AMQP_URL": wrong}),
        (77, ["devices", "counts"], {"REGISTRY_OPERATOR_KEY": "x" * 40}),
        (78, ["campaigns", "list"], {"DATABASE_URL": None}), (64, ["campaigns", "show", "x"], {}),
        (64, ["campaigns", "--no-such-option"], {}), (64, ["doctor", "--service", "http://rules:9400"], {}),
        (64, ["status", "--service", "rules"], {}), (65, ["publish", "--app", APP, str(ROOT / "LICENSE")], {}),
        (0, ["--version"], {}), (0, ["--help"], {}), (0, ["--generate-completion-script", "bash"], {}),
    ]
    for code, arguments, variables in cases:
        done = run(stack, *arguments, **variables)
        assert done.returncode == code, (arguments, done)
        assert code == 0 or done.stderr.startswith("Error: ") or done.stdout == "", (arguments, done)
        assert "Fatal" not in done.stderr and "nobody-" not in done.stdout, done
    assert run(stack, "--version").stdout.startswith("pushctl ")


def doctor(stack, *, codes: tuple[int, ...], input: str, **variables) -> dict[str, list[dict]]:
    """The findings of `pushctl doctor` that are neither ok nor skipped, by check."""
    answer = document(stack, "doctor", "--definitions", "-", "--migrations", str(ROOT / "Services"), "--service",
                      f"http://127.0.0.1:{stack.admin_port('rules')}", codes=codes, input=input, **variables)
    found: dict[str, list[dict]] = {}
    for finding in answer["findings"]:
        assert finding["severity"] in ("ok", "skipped") or finding["cure"], finding
        if finding["severity"] == "error":
            found.setdefault(finding["check"], []).append(finding)
    assert answer["healthy"] == (found == {})
    return found


def test_doctor_finds_nothing_on_a_healthy_stack_and_names_each_cure(stack, told):
    healthy = exported(stack)
    # Other tests lose messages on purpose.
    assert doctor(stack, codes=(0, 1), input=healthy).keys() <= {"census"}

    definitions = json.loads(healthy)
    definitions["policies"] = [p for p in definitions["policies"] if p["name"] != "dead-pushes"]
    for entry in definitions["permissions"]:
        if entry["user"] == "apns-sender":
            entry["read"] = "^$"
    found = doctor(stack, codes=(1,), input=json.dumps(definitions))
    assert found["policies"][0]["message"] == "the policy dead-pushes is missing"
    assert "import_definitions" in found["policies"][0]["cure"]
    assert "the user apns-sender may read “^$”" in found["broker-rights"][0]["message"]
    assert "rabbitmqctl set_permissions -p heliograph apns-sender" in found["broker-rights"][0]["cure"]

    with contextlib.ExitStack() as restored:
        restored.callback(sql, stack, "GRANT USAGE ON SCHEMA feedback TO heliograph_feedback")
        sql(stack, "REVOKE USAGE ON SCHEMA feedback FROM heliograph_feedback")
        found = doctor(stack, codes=(1,), input=healthy)
        assert "GRANT USAGE ON SCHEMA feedback" in found["database-rights"][0]["cure"]
    last = sql(stack, "SELECT max(version) FROM feedback.migration")
    with contextlib.ExitStack() as restored:
        restored.callback(sql, stack, "DELETE FROM feedback.migration; INSERT INTO feedback.migration SELECT * FROM kept; "
                                      "DROP TABLE kept")
        sql(stack, "CREATE TABLE kept AS TABLE feedback.migration")
        sql(stack, f"DELETE FROM feedback.migration WHERE version = {last}")
        found = doctor(stack, codes=(1,), input=healthy)
        assert found["schema"][0]["message"].startswith("feedback lacks 1 migrations, from 000")
        assert found["schema"][0]["cure"].startswith("pushctl migrate --migrations ")
    found = doctor(stack, codes=(1,), input=healthy, DATABASE_URL="postgresql://a:b@127.0.0.1:1/x",
                   AMQP_URL=stack.amqp_url.replace("@", "x@"))
    assert found["database"][0]["cure"] and "AMQP_URL" in found["broker"][0]["cure"]
    assert doctor(stack, codes=(0, 1), input=healthy).keys() <= {"census"}


class Tail:
    """A running `pushctl tail --json`."""

    def __init__(self, stack, log, *arguments: str):
        self.log = log
        self.process = subprocess.Popen(
            [stack.product("pushctl"), "tail", "--json", "--interval", "0.2", *arguments],
            env={**os.environ, **stack.env}, stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.PIPE, text=True)
        assert "following" in self.process.stderr.readline()

    @property
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


def test_tail_prints_each_decision_and_outcome_once(stack, told, tmp_path):
    user, _ = told
    other = f"tail-{uuid.uuid4()}"
    everyone, one = Tail(stack, tmp_path / "all", "--app", APP), Tail(stack, tmp_path / "one", "--app", APP, "--user", user)
    try:
        events = [publish(stack, user, other) for _ in range(40)]
        expected = {(event, person, kind) for event in events for person in (user, other) for kind in ("decision", "outcome")}

        def seen(tail) -> list[tuple]:
            return [(row["event"], row["user"], row["kind"]) for row in tail.rows if row["event"] in events]

        eventually(lambda: set(seen(everyone)) >= expected, 60, "every decision and outcome")
        eventually(lambda: len(seen(one)) >= 80, 60, "those of one user")
        assert len(seen(everyone)) == len(expected) and set(seen(everyone)) == expected
        assert set(seen(one)) == {row for row in expected if row[1] == user} and len(seen(one)) == 80
        row = next(row for row in everyone.rows if row["user"] == user and row["kind"] == "outcome")
        check_shape(row, "tail")
        assert (row["disposition"], row["origin"], row["app"]) == ("accepted", "apns", APP) and TIME.fullmatch(row["at"])
    finally:
        codes = [tail.interrupt() for tail in (everyone, one)]
    assert codes == [0, 0]


def test_status_repeats_until_it_is_interrupted(stack, tmp_path):
    shown = run(stack, "status")
    assert shown.returncode == 0, shown
    for title in ("Queues", "Routes", "Guards", "Campaigns", "Census"):
        assert f"\n{title}\n" in shown.stdout, shown.stdout
    assert "\x1b" not in shown.stdout
    # The census counts every few seconds, and begins after the start of the stack.
    eventually(lambda: "family-portal" in run(stack, "status").stdout, 120, "the app in the census")
    with (tmp_path / "watched").open("w") as log:
        watched = subprocess.Popen(
            [stack.product("pushctl"), "status", "--watch", "--interval", "0.5", "--json"],
            env={**os.environ, **stack.env, "AMQP_URL": stack.amqp_url}, stdin=subprocess.DEVNULL, stdout=log)
        try:
            eventually(lambda: len((tmp_path / "watched").read_text().splitlines()) >= 2, 60, "the second reading")
        finally:
            watched.send_signal(signal.SIGINT)
            assert watched.wait(30) == 0
    partly = document(stack, "status", AMQP_URL=None, DATABASE_URL=None)
    assert partly["queues"] is None and partly["census"] is None


def test_status_shows_missing_queues_and_ends_with_1(stack, tmp_path):
    (tmp_path / "apps.yaml").write_text("apps:\n  never-applied: {}\n")
    answer = document(stack, "status", "--apps", str(tmp_path / "apps.yaml"), codes=(1,))
    missing = {queue["queue"] for queue in answer["queues"] if queue["missing"]}
    assert "rules.events.app.never-applied" in missing and "rules.events" not in missing
    assert all(queue["ready"] is None and queue["consumers"] is None for queue in answer["queues"] if queue["missing"])
    shown = run(stack, "status", "--apps", str(tmp_path / "apps.yaml"))
    assert shown.returncode == 1 and "run pushctl topology apply" in shown.stdout and " missing" in shown.stdout


class Gate:
    """A TCP forwarder that can be closed and opened again on the same port."""

    def __init__(self, target: tuple[str, int]):
        self.target, self.port, self.sockets = target, 0, []
        self.open()

    def open(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                one = listener.accept()[0]
                other = socket.create_connection(self.target)
                self.sockets += [one, other]
                for ends in ((one, other), (other, one)):
                    threading.Thread(target=self.forward, args=ends, daemon=True).start()

    @staticmethod
    def forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for one in [self.listener, *self.sockets]:
            # `accept` and `recv` of other threads return.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self.sockets = []


def test_status_goes_on_during_an_outage(stack, tmp_path):
    url = urllib.parse.urlsplit(stack.env["AMQP_URL"])
    gate = Gate((url.hostname, url.port))
    log = tmp_path / "watched"
    with log.open("w") as output:
        watched = subprocess.Popen(
            [stack.product("pushctl"), "status", "--watch", "--interval", "0.5", "--json"], stdin=subprocess.DEVNULL,
            env={**os.environ, **stack.env, "AMQP_URL": stack.env["AMQP_URL"].replace(f":{url.port}", f":{gate.port}")},
            stdout=output)

        def last() -> dict:
            lines = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
            return json.loads(lines[-1]) if lines else {"queues": None, "away": {"broker": None}}

        try:
            eventually(lambda: last()["queues"], 60, "the first reading")
            gate.close()
            eventually(lambda: last()["away"]["broker"], 120, "the outage")
            assert last()["queues"] is None and last()["census"] is not None and watched.poll() is None
            gate.open()
            eventually(lambda: last()["queues"] and last()["away"]["broker"] is None, 120, "the recovery")
        finally:
            gate.close()
            watched.send_signal(signal.SIGINT)
            assert watched.wait(30) == 0
