"""Events over HTTP: the same decisions as over AMQP in every mode, and nothing lost or half accepted."""

import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import time
import urllib.error
import urllib.request
import uuid

import pytest
from local_stack import cloud_event, eventually
from sentinels import all_is_handled

APP = "family-portal"
TYPE = "chat.message.created"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
QUEUE = f"rules.events.app.{APP}"


def pushctl(stack, *arguments: str) -> str:
    done = subprocess.run([stack.product("pushctl"), *arguments], env={**stack.environment, **stack.env},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def create_key(stack, *options: str) -> str:
    return pushctl(stack, "keys", "create", "--service", "rules", "--name", "events", "--may", "events:publish", *options)


@pytest.fixture(scope="module")
def key(stack) -> str:
    return create_key(stack, "--app", APP)


def post(stack, key: str | None, body: bytes, content_type: str | None = STRUCTURED, query: str = "", **headers: str):
    """Returns status, parsed answer and headers of POST /v1/events."""
    request = urllib.request.Request(f"{stack.env['EVENTS_API_URL']}/v1/events{query}", data=body, method="POST")
    # urllib adds a content type of its own.
    request.add_header("Content-Type", content_type or "text/plain")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as refusal:
        assert refusal.headers["Content-Type"] == "application/problem+json"
        return refusal.code, json.loads(refusal.read()), refusal.headers


def chat(reader: str, text: str = "Dinner is ready") -> dict:
    return {"message": {"id": 1, "text": text, "thread_id": None}, "sender": {"id": "writer", "name": "Pat"},
            "participants": ["writer", reader]}


def decisions(stack, event: str) -> list[tuple]:
    """The decisions about an event, without ids and times."""
    printed = json.loads(subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"event={event}"],
        input="SELECT json_agg(json_build_array(app, source, type, rule, user_id, answer, reason) ORDER BY user_id) "
              "FROM rules.event e JOIN rules.decision d ON d.event = e.key WHERE e.id = :'event'",
        capture_output=True, text=True, timeout=20, check=True).stdout.strip() or "null")
    return [tuple(row) for row in printed or []]


def event_count(stack, event: str) -> int:
    done = subprocess.run(["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"event={event}"],
                          input="SELECT count(*) FROM rules.event WHERE id = :'event'", capture_output=True, text=True,
                          timeout=20, check=True)
    return int(done.stdout)


def test_an_event_has_the_same_decisions_over_amqp_and_in_the_three_modes(stack, key):
    reader, run = f"reader-{uuid.uuid4()}", uuid.uuid4()
    ids = [f"{mode}-{run}" for mode in ("amqp", "structured", "binary", "batch")]
    data = chat(reader)
    stack.publish(f"{APP}.{TYPE}", cloud_event(TYPE, data, ids[0]), content_type=STRUCTURED)
    answers = [
        post(stack, key, cloud_event(TYPE, data, ids[1])),
        post(stack, key, json.dumps(data).encode(), "application/json", ce_specversion="1.0", ce_id=ids[2],
             ce_source="/system-test", ce_type=TYPE),
        post(stack, key, b"[" + cloud_event(TYPE, data, ids[3]) + b"]", BATCH),
    ]
    for (status, answer, _), id in zip(answers, ids[1:]):
        assert status == 202 and answer["accepted"] == 1 and answer["events"][0]["id"] == id, answer
    rows = [eventually(lambda: decisions(stack, id), what=f"the decisions about {id}") for id in ids]
    assert len(rows[0]) == 1 and rows == [rows[0]] * 4, rows


def test_a_wait_answers_with_decision_and_outcome(stack, phones, key):
    reader = f"reader-{uuid.uuid4()}"
    token = uuid.uuid4().hex
    phones(APP, reader, token)
    id = f"wait-{uuid.uuid4()}"
    status, answer, _ = post(stack, key, cloud_event(TYPE, chat(reader), id), query="?wait=30s")
    assert status == 200 and answer["complete"], answer
    [notification] = answer["events"][0]["notifications"]
    assert notification["user"] == reader
    assert [d["answer"] for d in notification["decisions"]] == ["push"]
    assert [o["disposition"] for o in notification["outcomes"]] == ["accepted"]
    # The same event again: it is not decided twice, also after rules has handled the second one.
    status, again, _ = post(stack, key, cloud_event(TYPE, chat(reader), id), query="?wait=30s")
    assert status == 200 and again["events"][0]["notifications"] == [notification]
    all_is_handled(stack, APP)
    assert event_count(stack, id) == 1 and len(decisions(stack, id)) == 1
    assert len([r for r in stack.requests("apns") if r.get("token") == token]) == 1


def test_an_idempotency_key_identifies_an_event_without_an_id(stack, key):
    reader = f"reader-{uuid.uuid4()}"
    event = json.loads(cloud_event(TYPE, chat(reader), "x"))
    del event["id"]
    body = json.dumps(event).encode()
    assert post(stack, key, body)[0] == 400
    ids = {post(stack, key, body, query="?wait=30s", Idempotency_Key=f"order-{reader}")[1]["events"][0]["id"] for _ in "12"}
    assert len(ids) == 1
    id = ids.pop()
    eventually(lambda: decisions(stack, id), what="the decision")
    assert event_count(stack, id) == 1 and len(decisions(stack, id)) == 1


def test_half_of_a_bad_batch_is_accepted_and_decided(stack, key):
    reader, run, dead = f"reader-{uuid.uuid4()}", uuid.uuid4(), stack.depth(f"{QUEUE}.dead")
    good = [cloud_event(TYPE, chat(reader), f"good-{run}-{number}") for number in range(3)]
    large = cloud_event(TYPE, chat(reader, "x" * 300_000), f"large-{run}")
    bad = [b"{}", b"nonsense", cloud_event("heliograph.x", {}, f"reserved-{run}"), large]
    items = [good[0], bad[0], bad[1], good[1], bad[2], bad[3], good[2]]
    status, answer, _ = post(stack, key, b"[" + b",".join(items) + b"]", BATCH)
    assert status == 207 and answer["accepted"] == 3, answer
    assert [e["status"] for e in answer["events"]] == [
        "accepted", "refused", "refused", "accepted", "refused", "refused", "accepted"]
    assert [e["problem"]["status"] for e in answer["events"] if "problem" in e] == [400, 400, 400, 413]
    for number in range(3):
        eventually(lambda: decisions(stack, f"good-{run}-{number}"), what=f"the decision about event {number}")
    assert post(stack, key, b"[{}]", BATCH)[0] == 400
    assert post(stack, key, b"[" + b",".join([b"0"] * 10_001) + b"]", BATCH)[0] == 413
    assert post(stack, key, b"[" + good[0], BATCH)[0] == 400
    assert stack.depth(f"{QUEUE}.dead") == dead


def test_a_foreign_app_and_a_bad_key_publish_nothing(stack, key):
    reader, id = f"reader-{uuid.uuid4()}", f"foreign-{uuid.uuid4()}"
    body = cloud_event(TYPE, chat(reader), id)
    for headers, query in (({"Heliograph_App": "hide-and-seek"}, ""), ({}, "?app=hide-and-seek")):
        assert post(stack, key, body, query=query, **headers)[0] == 403
    everything = create_key(stack, "--all-apps")
    assert post(stack, everything, body)[0] == 400
    assert post(stack, everything, body, query="?app=unknown")[0] == 404
    reading = pushctl(stack, "keys", "create", "--service", "rules", "--name", "r", "--app", APP, "--may", "events:read")
    assert post(stack, reading, body)[0] == 403
    revoked, expired = create_key(stack, "--app", APP), create_key(stack, "--app", APP, "--days", "1")
    pushctl(stack, "keys", "revoke", revoked, "--service", "rules")
    subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"id={expired[4:16]}", "-v",
         f"at={datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)}"],
        input="UPDATE rules.api_key SET expires_at = :'at' WHERE id = :'id'", text=True, timeout=20, check=True)
    for bad in (None, "hgk_x", revoked, expired, stack.env["REGISTRY_OPERATOR_KEY"]):
        status, _, headers = post(stack, bad, body)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer"), bad
    # The queues of both apps are handled: none of the others was in front.
    for app in (APP, "hide-and-seek"):
        all_is_handled(stack, app)
    assert event_count(stack, id) == 0


def token(stack, *options: str, app: str = APP) -> str:
    return pushctl(stack, "token", "mint", "--app", app, "--apps", stack.env["HELIOGRAPH_APPS"], *options)


def test_a_publishers_token_publishes_and_no_other_does(stack):
    reader, run = f"reader-{uuid.uuid4()}", uuid.uuid4()
    shop = ("--publisher", "shop", "--may", "events:publish")
    status, answer, _ = post(
        stack, token(stack, *shop, "--event-type", "chat."), cloud_event(TYPE, chat(reader), f"token-{run}"))
    assert status == 202, answer
    refused = {
        token(stack, *shop, "--expires-in", "-60"): 401, token(stack, "--user", reader): 401,
        token(stack, *shop, "--event-type", "order."): 403,
        token(stack, "--publisher", "shop", "--may", "notifications:send"): 403}
    for credential, expected in refused.items():
        status, problem, headers = post(stack, credential, cloud_event(TYPE, chat(reader), f"refused-{run}"))
        assert status == expected and "token" in problem["detail"], problem
    foreign = post(stack, token(stack, *shop), cloud_event(TYPE, chat(reader), f"refused-{run}"), query="?app=hide-and-seek")
    assert foreign[0] == 403
    # A publisher's token is no user's, for no service.
    headers = {"Authorization": f"Bearer {token(stack, *shop)}"}
    for url in (f"{stack.env['REGISTRY_URL']}/v1/installations", f"{stack.env['RULES_URL']}/v1/preferences"):
        assert stack.http("GET", url, headers=headers)[0] in (401, 403)
    eventually(lambda: decisions(stack, f"token-{run}"), what="the decision")
    all_is_handled(stack, APP)
    assert event_count(stack, f"refused-{run}") == 0


def send_test_push(stack, user: str) -> tuple[int, dict]:
    return stack.http("POST", f"{stack.env['EVENTS_API_URL']}/v1/test-pushes?wait=30s", None,
                      {"Authorization": f"Bearer {stack.bearer(APP, user)}"}, timeout=60)


def test_a_test_push_answers_with_what_the_provider_said(stack, phones):
    user, device = f"tested-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, device)
    status, answer = send_test_push(stack, user)
    assert status == 200 and answer["complete"] and answer["decision"] == "push", answer
    assert [(d["provider"], d["result"]) for d in answer["devices"]] == [("apns", "accepted")]
    [request] = [r for r in stack.requests("apns") if r.get("token") == device]
    assert request["body"]["aps"]["alert"]["title"] == "Test push"
    status, problem = send_test_push(stack, user)
    assert status == 429, problem


def test_a_test_push_to_a_dead_token_has_the_providers_reason(stack, phones):
    user, device = f"dead-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, device)
    script = {"provider": "apns", "token": device, "status": 410, "reason": "Unregistered",
              "timestamp": int(time.time() * 1000) + 1000}
    assert stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", script)[0] in (200, 201, 204)
    status, answer = send_test_push(stack, user)
    assert status == 200 and answer["complete"], answer
    assert [(d["result"], d["reason"]) for d in answer["devices"]] == [("unregistered", "Unregistered")]
    status, answer = send_test_push(stack, f"nobody-{user}")
    assert status == 200 and answer["devices"] == [] and answer["reason"] == "no-device", answer


def test_oversized_bodies_and_unknown_content_types_are_refused(stack, key):
    body = cloud_event(TYPE, chat("x", "y" * 300_000), f"large-{uuid.uuid4()}")
    assert post(stack, key, body)[0] == 413
    small = cloud_event(TYPE, chat("x"), f"type-{uuid.uuid4()}")
    for content_type in (None, "application/json", "application/cloudevents+avro", "application/xml"):
        status, problem, _ = post(stack, key, small, content_type)
        assert status == 415 and "application/cloudevents+json" in problem["detail"]
    assert post(stack, key, b"<x/>", "text/xml", ce_specversion="1.0", ce_id="1", ce_source="/", ce_type=TYPE)[0] == 415


def memory(pid: int, name: str) -> int:
    """A line of the process's status, in bytes."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def test_bodies_in_progress_need_at_most_25_times_their_size_in_memory(stack, key):
    """The README's figure, by which operators set the memory limit. Short numbers need most memory for their size."""
    apps = {APP: key, "hide-and-seek": create_key(stack, "--app", "hide-and-seek")}
    numbers = {"numbers": [0] * 120_000}

    def batch(app: str) -> bytes:
        events = [cloud_event("test.measured", numbers, f"memory-{uuid.uuid4()}") for _ in range(32)]
        return (b"[" + b",".join(events) + b"]").replace(b", ", b",")

    bodies = {app: batch(app) for app in apps}
    size = sum(len(body) for body in bodies.values())
    assert 12 << 20 < size <= 16 << 20, "nearly EVENTS_API_REQUEST_BYTES"
    pid = int(stack.service("pid", "events-api"))
    before = memory(pid, "VmRSS")
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets the peak
    with concurrent.futures.ThreadPoolExecutor(len(apps)) as pool:
        for _ in range(3):
            answers = list(pool.map(lambda app: post(stack, apps[app], bodies[app], BATCH)[0], apps))
            assert answers == [202, 202]
    factor = (memory(pid, "VmHWM") - before) / size
    print(f"{factor:.1f} times the size of the bodies")
    assert factor <= 25


def test_while_the_broker_is_away_nothing_is_accepted_and_nothing_is_published_later(stack, key, events_api_confirm_time):
    reader, run = f"reader-{uuid.uuid4()}", uuid.uuid4()
    stack.service("stop", "broker")
    try:
        status, problem, headers = post(stack, key, cloud_event(TYPE, chat(reader), f"away-{run}"))
        assert status == 503 and int(headers["Retry-After"]) > 0, problem
        items = [cloud_event(TYPE, chat(reader), f"away-{run}-{number}") for number in range(2)]
        status, answer, headers = post(stack, key, b"[" + b",".join(items) + b"]", BATCH)
        assert status == 503 and answer["accepted"] == 0 and int(headers["Retry-After"]) > 0
        assert [e["problem"]["status"] for e in answer["events"]] == [503, 503]
    finally:
        stack.service("start", "broker")
    stack.service("ready", "events-api")
    # A client sends again until the broker takes it, and gets one set of decisions.
    again = cloud_event(TYPE, chat(reader), f"again-{run}")
    eventually(lambda: post(stack, key, again)[0] == 202, within=60, what="a confirm")
    eventually(lambda: decisions(stack, f"again-{run}"), within=60, what="the decision")
    assert event_count(stack, f"away-{run}") == 0
    assert [event_count(stack, f"away-{run}-{number}") for number in range(2)] == [0, 0]


@pytest.fixture
def events_api_confirm_time(stack):
    """A short wait for confirms during the test."""
    file = stack.state / "environment" / "events-api"
    file.parent.mkdir(exist_ok=True)
    file.write_text("EVENTS_API_CONFIRM_TIME=1s\n")
    stack.restart_all("events-api")
    yield
    file.unlink()
    stack.restart_all("events-api")
