"""An import that is interrupted and killed, continues where it stopped, and is exported again."""

import csv
import json
import os
import pty
import signal
import subprocess

import pytest

from local_stack import eventually
from test_campaigns import query

APP = "hide-and-seek"
LINES = 30_000
USER = "bulk-"
# One line in 500 is invalid.
REFUSED = list(range(500, LINES + 1, 500))


def token(number: int) -> str:
    return f"bulk-token-{number:06}"


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """A file with devices of another system."""
    path = tmp_path_factory.mktemp("bulk") / "devices.ndjson"
    with path.open("w") as file:
        for number in range(1, LINES + 1):
            line = {"user": f"{USER}{number // 3}", "kind": "fcm-token", "token": token(number), "locale": "de-CH"}
            if number in REFUSED:
                line["kind"] = "pager"
            file.write(json.dumps(line) + "\n")
    return path


@pytest.fixture
def pushctl(stack):
    """Yields a function that returns the arguments and environment of a `pushctl devices` command."""
    names = ("DATABASE_URL", "HELIOGRAPH_APPS", "REGISTRY_TOKEN_KEYS_FILE")
    environment = {**os.environ, **{name: stack.env[name] for name in names}}

    def command(*words) -> dict:
        return {"args": [stack.product("pushctl"), "devices", *map(str, words)], "env": environment}

    yield command
    query(stack, f"DELETE FROM registry.registration WHERE app = '{APP}' AND user_id LIKE '{USER}%'")


def without_keys(command: dict) -> dict:
    environment = {name: value for name, value in command["env"].items() if name != "REGISTRY_TOKEN_KEYS_FILE"}
    return {**command, "env": environment}


def run(command: dict) -> subprocess.CompletedProcess:
    return subprocess.run(**command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def interruptible() -> None:
    """Resets SIGINT, which background processes of a shell ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def cut_short(stack, command: dict, number: int, beyond: int) -> subprocess.Popen:
    """Starts an import, and sends it a signal once it is past a line."""
    process = subprocess.Popen(
        **command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=interruptible)
    eventually(lambda: reached(stack) > beyond, 60, "some lines")
    process.send_signal(number)
    return process


def reached(stack) -> int:
    return int(query(stack, "SELECT coalesce(max(line), 0) FROM registry.import WHERE name LIKE '%/devices.ndjson'"))


def on_a_terminal(command: dict) -> tuple[int, str]:
    """The exit code of a command, and its output on a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(**command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            seen += os.read(master, 4096)
        except OSError:  # EIO: the other side is closed.
            break
    os.close(master)
    output, _ = process.communicate(timeout=60)
    return process.returncode, (seen + output).decode()


def test_an_interrupted_and_killed_import_imports_every_line_once(stack, devices, pushctl, tmp_path):
    bring = pushctl("import", devices, "--app", APP, "--unannounced")
    report = devices.with_name("devices.ndjson.refused.ndjson")

    checked = run(pushctl("import", devices, "--app", APP, "--dry-run", "--report", tmp_path / "dry.ndjson"))
    assert checked.returncode == 1 and f"{LINES} lines" in checked.stdout, checked.stderr
    assert reached(stack) == 0

    stopped = cut_short(stack, bring, signal.SIGINT, 1000)
    _, said = stopped.communicate(timeout=60)
    assert stopped.returncode == 1 and "run the same command to continue" in said
    first = reached(stack)
    assert 1000 < first < LINES

    killed = cut_short(stack, bring, signal.SIGKILL, first + 1000)
    killed.communicate(timeout=60)
    second = reached(stack)
    assert first + 1000 < second < LINES

    code, seen = on_a_terminal(bring)
    assert code == 1, seen  # Some lines were refused.
    assert f"continuing after line {second}" in seen and "%" in seen and "[#" in seen
    assert f"{len(REFUSED)} refused: see {report} for each line and reason" in seen

    count = query(stack, f"SELECT count(*), count(DISTINCT token) FROM registry.registration WHERE user_id LIKE '{USER}%'")
    assert count == f"{LINES - len(REFUSED)}|{LINES - len(REFUSED)}"
    # Encrypted like tokens that devices register.
    assert query(stack, f"""SELECT count(*) FROM registry.registration
        WHERE user_id LIKE '{USER}%' AND NOT starts_with(token, 'v1 local ')""") == "0"
    report_lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [entry["line"] for entry in report_lines] == REFUSED
    assert all("kind" in entry["why"] and "bulk-token" not in entry["why"] for entry in report_lines)

    again = run(bring)
    assert again.returncode == 1 and "import it again with --again" in again.stderr

    # Without the token keys, both commands fail.
    for words in (["import", devices, "--app", APP, "--again"], ["export", "--app", APP]):
        refused = run(without_keys(pushctl(*words)))
        assert refused.returncode == 1 and "--token-keys FILE" in refused.stderr, refused.stderr
    masked, clear = tmp_path / "masked.csv", tmp_path / "clear.csv"
    for path, words in ((masked, []), (clear, ["--with-tokens"])):
        done = run(pushctl("export", "--app", APP, "--output", path, *words))
        assert done.returncode == 0, done.stderr
    written = {row["token"]: row["user"] for row in csv.DictReader(clear.open()) if row["user"].startswith(USER)}
    kept = [number for number in range(1, LINES + 1) if number not in set(REFUSED)]
    assert written == {token(number): f"{USER}{number // 3}" for number in kept}
    assert "bulk-token-000001" not in masked.read_text()
    # An existing file is not overwritten.
    assert run(pushctl("export", "--app", APP, "--output", clear)).returncode == 1
