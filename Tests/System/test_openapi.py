"""Compares openapi.yaml of the registry, rules and events-api with the services. Schemathesis generates valid and invalid requests
and checks every response against the description.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from sentinels import all_is_handled

HERE = pathlib.Path(__file__).parent
SEED = "17"


def schemathesis(stack, document: str, *options: str, key: str | None = None) -> subprocess.CompletedProcess:
    """Runs schemathesis with the bearer token of a new user and an operator key."""
    return subprocess.run(
        [pathlib.Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", document,
         "--seed", SEED, "--generation-database", "none", "--request-timeout", "10", "--suppress-health-check",
         "too_slow", "--no-color", *options],
        env=os.environ | {"USER_BEARER": stack.bearer("family-portal", "openapi"),
                          "OPERATOR_KEY": key or stack.env["REGISTRY_OPERATOR_KEY"]},
        capture_output=True, text=True, timeout=180, cwd=stack.state,
    )


def counts(done: subprocess.CompletedProcess) -> tuple[int, int]:
    """(operations tested, requests sent)."""
    return (int(re.search(r"Tested: (\d+)", done.stdout)[1]), int(re.search(r"(\d+) generated", done.stdout)[1]))


def test_every_response_of_the_registry_matches_its_description(stack):
    tags = ("installations", "push", "topics", "operator", "description")
    done = schemathesis(
        stack, f"{stack.env['REGISTRY_URL']}/openapi.yaml", "--max-examples", "25",
        *(option for tag in tags for option in ("--include-tag", tag)))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    operations, requests = counts(done)
    assert operations == 23 and requests > 300


def test_every_response_of_rules_matches_its_description(stack):
    tags = ("preferences", "inbox", "presence", "operator", "description")
    key = subprocess.run(
        [stack.product("pushctl"), "keys", "create", "--service", "rules", "--name", "schemathesis", "--all-apps", "--may",
         "events:read", "--may", "counts:read", "--may", "preferences:read", "--may", "preferences:write", "--may",
         "notifications:revoke"],
        env={**stack.environment, **stack.env}, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    done = schemathesis(
        stack, f"{stack.env['RULES_URL']}/openapi.yaml", "--max-examples", "25",
        *(option for tag in tags for option in ("--include-tag", tag)), key=key)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    operations, requests = counts(done)
    assert operations == 17 and requests > 300


def test_every_response_of_events_api_matches_its_description(stack):
    key = subprocess.run(
        [stack.product("pushctl"), "keys", "create", "--service", "rules", "--name", "schemathesis", "--app", "family-portal",
         "--may", "events:publish", "--may", "notifications:send"],
        env={**stack.environment, **stack.env}, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    done = schemathesis(stack, f"{stack.env['EVENTS_API_URL']}/openapi.yaml", "--max-examples", "25", key=key)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    operations, requests = counts(done)
    assert operations == 4 and requests > 90
    # Rules dead-letter generated events without the fields that a rule needs; later tests expect no dead letters.
    all_is_handled(stack, "family-portal")
    code, output = stack.pushctl("dead", "drop", "rules.events.app.family-portal", "--yes")
    assert code == 0, output


def test_probes_and_metrics_match_their_description(stack):
    # The admin port answers 404, not 405, to methods that probes do not use.
    done = schemathesis(
        stack, f"{stack.env['REGISTRY_URL']}/openapi.yaml", "--url",
        f"http://127.0.0.1:{stack.admin_port('token-registry')}", "--include-tag", "admin", "--exclude-checks",
        "unsupported_method")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert counts(done)[0] == 3


@pytest.mark.parametrize("true, untrue, operation, place", [
    ("required: [token, platform, environment]", "required: [token, platform]", "register",
     "POST /api/notifications/push/register"),
    ("required: [topics]", "required: [topics, count]", "listTopics", "GET /v1/topics"),
], ids=["request", "response"])
def test_a_wrong_description_is_detected(stack, tmp_path, true, untrue, operation, place):
    _, text = stack.http("GET", f"{stack.env['REGISTRY_URL']}/openapi.yaml")
    assert true in text
    (tmp_path / "openapi.yaml").write_text(text.replace(true, untrue))
    done = schemathesis(
        stack, str(tmp_path / "openapi.yaml"), "--url", stack.env["REGISTRY_URL"], "--include-operation-id",
        operation, "--phases", "coverage")
    assert done.returncode == 1 and place in done.stdout, done.stdout[-4000:]
