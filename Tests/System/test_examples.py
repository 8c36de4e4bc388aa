"""The publishers of deploy/examples against a running stack: each publishes one event that rules decide."""

import os
import subprocess
import sys

import pytest

from local_stack import ROOT, eventually

APP = "family-portal"
EXAMPLES = ROOT / "deploy" / "examples"


@pytest.fixture(scope="module")
def key(stack) -> str:
    code, output = stack.pushctl(
        "keys", "create", "--service", "rules", "--name", "examples", "--app", APP, "--may", "events:publish")
    assert code == 0, output
    return next(line for line in output.splitlines() if line.startswith("hgk_"))


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> dict[str, list]:
    """The command of each example. The Swift example is compiled first."""
    folder = tmp_path_factory.mktemp("examples")
    subprocess.run(
        ["swiftc", "-parse-as-library", EXAMPLES / "swift" / "publish.swift", "-o", folder / "publish"], check=True,
        timeout=300)
    return {
        "python": [sys.executable, EXAMPLES / "python" / "publish_http.py"],
        "python-amqp": [sys.executable, EXAMPLES / "python" / "publish_amqp.py"],
        "node": ["node", EXAMPLES / "node" / "publish.mjs"],
        "go": ["go", "run", EXAMPLES / "go" / "publish.go"],
        "java": ["java", EXAMPLES / "java" / "Publish.java"],
        "swift": [folder / "publish"],
        "shell": [EXAMPLES / "shell" / "publish"],
    }


def publish(stack, command: list, key: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        env=os.environ | {"EVENTS_API_URL": stack.env["EVENTS_API_URL"], "EVENTS_API_KEY": key, "AMQP_URL": stack.amqp_url,
                          "GOCACHE": str(ROOT / ".build" / "go-cache"), "GOFLAGS": "-mod=mod"} | environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", ["python", "python-amqp", "node", "go", "java", "swift", "shell"])
def test_an_example_publishes_an_event_that_is_decided(stack, key, commands, name):
    done = publish(stack, commands[name], key)
    assert done.returncode == 0, done.stdout + done.stderr
    word, event = done.stdout.split()
    assert word == "accepted"

    def decisions():
        code, output = stack.pushctl("explain", event, "--app", APP)
        return code == 0 and output

    output = eventually(decisions, what="the decision")
    # The writer gets no notification.
    assert "  457  " in output and "  458  " in output and "  456  " not in output


@pytest.mark.parametrize("name", ["python", "node", "go", "java", "swift", "shell"])
def test_an_example_reports_a_refused_key(stack, commands, name):
    done = publish(stack, commands[name], "hgk_forged")
    assert done.returncode != 0 and "accepted" not in done.stdout
    assert "401" in done.stderr, done.stderr
