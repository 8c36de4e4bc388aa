"""Alerts and boards on a running Prometheus: every query works, and alerts fire when their cause exists."""

import json
import pathlib
import re
import subprocess
import sys
import time
import uuid

import pika
import pytest
import yaml

import monitoring
from local_stack import eventually
from port_reservation import free_port_base
from test_token_deactivation import requests_of
from upstream import chat_event

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
APP, TYPE = "family-portal", "chat.message.created"
PUSHES = f"apns-sender.pushes.interactive.{APP}"
# Metrics without a series on a healthy stack, and the reason.
ABSENT = {
    "heliograph_push_quota_rate": "no project has a quota",
    "heliograph_certificate_expiry_days": "no app has a client certificate",
    "heliograph_credential_loads_total": "no credential file was changed",
    "heliograph_rows_dead_lettered_total": "no row is dead",
    "heliograph_registry_unreadable_tokens_total": "all tokens can be decrypted",
    "heliograph_registry_unreadable_registrations_total": "all registrations can be read",
    "heliograph_push_refusals_total": "no target was refused",
    "heliograph_push_targets_revoked_total": "no push was revoked",
    "heliograph_messages_retried_total": "no message was retried",
    "heliograph_messages_dead_lettered_total": "no message was dead-lettered",
    "heliograph_rules_released_users_total": "nothing was held",
    "heliograph_registry_registrations_total": "no device was registered over the bus",
    "heliograph_registry_campaign_devices_total": "no campaign ran",
    "heliograph_registry_deactivations_total": "no device was deactivated",
    "heliograph_feedback_guard_tripped": "no route has evidence",
    "heliograph_feedback_quarantined": "nothing is in quarantine",
    "heliograph_push_third_party_open": "no route of FCM has sent",
    "heliograph_census": "the census of the shared stack may not have counted",
    "heliograph_census_age_seconds": "the census of the shared stack may not have counted",
}
# Queries that return only series of a fault.
ABSENT_QUERIES = ("> 0", 'status=~"5..', 'disposition!="done"', 'result="failed"')


def promtool(*arguments) -> None:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_rules_and_configurations_and_their_tests_pass(tmp_path):
    promtool("check", "rules", MONITORING / "rules.yaml")
    promtool("test", "rules", MONITORING / "rules-test.yaml")
    local = tmp_path / "prometheus.yaml"
    local.write_text(monitoring.configuration(21000, 9091, monitoring.RULES))
    promtool("check", "config", local)
    promtool("check", "config", "--syntax-only", MONITORING / "prometheus.yaml")
    hasty = tmp_path / "rules.yaml"
    hasty.write_text(monitoring.hasty(monitoring.RULES.read_text()))
    promtool("check", "rules", hasty)
    assert not re.search(r"for: \d+[mh]|\[\d+[mh]\]|offset \d+m|> 1000 and", hasty.read_text())


def test_boards_and_the_rules_for_kubernetes_are_those_that_the_generator_writes():
    done = subprocess.run(
        [sys.executable, MONITORING / "generate.py", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_metrics_of_a_service_are_in_the_format_of_prometheus(stack):
    for service in monitoring.ADMIN_PORTS:
        _, text = stack.http("GET", f"http://127.0.0.1:{stack.admin_port(service)}/metrics")
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        assert "error" not in done.stderr.lower() and "no help text" not in done.stderr, f"{service}: {done.stderr}"


@pytest.fixture(scope="module")
def prometheus(stack, tmp_path_factory):
    """A Prometheus that scrapes the stack each second, with rules whose waits and windows are seconds."""
    folder, base = tmp_path_factory.mktemp("prometheus"), free_port_base()
    rules = folder / "rules.yaml"
    rules.write_text(monitoring.hasty(monitoring.RULES.read_text()))
    monitoring.turn_plugin(stack.state, base + 1)
    text = monitoring.configuration(stack.port_base, base + 1, rules, "1s")
    (folder / "prometheus.yaml").write_text(text)
    try:
        with monitoring.Prometheus(folder, base).running() as prometheus:
            up = 'count(up{job=~"heliograph|rabbitmq"} == 1)'
            targets = str(len(monitoring.ADMIN_PORTS) + 1)
            eventually(lambda: [one["value"][1] for one in prometheus.query(up)] == [targets], 60, "all targets")
            yield prometheus
    finally:
        monitoring.turn_plugin(stack.state, None)


def fires(prometheus, name: str, **labels: str) -> bool:
    wanted = {"alertname": name, **labels}
    return any(wanted.items() <= alert.items() for alert in prometheus.firing())


def tell(stack, user: str, count: int = 1, timestamp: int | None = None) -> None:
    with stack.channel() as channel:
        for _ in range(count):
            event = str(uuid.uuid4())
            channel.basic_publish(
                "events", f"{APP}.{TYPE}", chat_event(user, event),
                pika.BasicProperties(content_type="application/cloudevents+json", timestamp=timestamp), mandatory=True)


def board_queries() -> list[tuple[str, str]]:
    boards = [json.loads(path.read_text()) for path in sorted((MONITORING / "boards").glob("*.json"))]
    return [
        (f"{board['title']}: {panel['title']}", target["expr"])
        for board in boards for panel in board["panels"] for target in panel["targets"]
    ]


def test_each_query_of_boards_and_alerts_works_and_returns_data(stack, phones, prometheus):
    user, token = f"m-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)

    def empty() -> list[str]:
        tell(stack, user)
        found = []
        for place, query in board_queries():
            names = set(re.findall(r"heliograph_[a-z_]+?(?=_bucket|_count|\b)", query))
            result = prometheus.query(monitoring.hasty(query))
            if not result and not names & ABSENT.keys() and not any(part in query for part in ABSENT_QUERIES):
                found.append(f"{place}: {query}")
        return found

    left: list[str] = []

    def all_have_data() -> bool:
        left[:] = empty()
        return not left

    try:
        eventually(all_have_data, 60, "data for each panel")
    except AssertionError:
        raise AssertionError(f"panels without data: {left}") from None
    for group in yaml.safe_load(monitoring.RULES.read_text())["groups"]:
        for rule in group["rules"]:
            prometheus.query(rule["expr"])
    assert [rule for group in prometheus.get("rules")["data"]["groups"] for rule in group["rules"]
            if rule["health"] == "err"] == []
    delays = prometheus.query(f'heliograph_event_to_accepted_seconds_count{{app="{APP}",lane="interactive"}}')
    assert sum(float(one["value"][1]) for one in delays) >= 1


def test_a_stopped_sender_fires_alerts_about_the_target_its_queue_and_late_pushes(stack, phones, prometheus):
    user, token = f"m-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    stack.service("stop", "apns-sender")
    try:
        tell(stack, user, 8)
        eventually(lambda: fires(prometheus, "HeliographTargetDown", service="apns-sender"), 30, "the target's alert")
        missing = {"name": "HeliographServiceMissing", "service": "apns-sender"}
        eventually(lambda: fires(prometheus, **missing), 30, "the service's alert")
        eventually(lambda: fires(prometheus, "HeliographQueueNotConsumed", queue=PUSHES), 30, "the queue's alert")

        def grows() -> bool:
            tell(stack, user, 3)
            return fires(prometheus, "HeliographQueueGrowing", queue=PUSHES)

        eventually(grows, 30, "the alert about a growing queue")
        # All of them are late after the objective of 5 s.
        eventually(lambda: prometheus.query('max_over_time(up{service="apns-sender"}[6s]) == 0'), 30, "six seconds")
    finally:
        stack.service("start", "apns-sender")
        stack.service("ready", "apns-sender")
    ended = ["HeliographTargetDown", "HeliographServiceMissing", "HeliographQueueNotConsumed", "HeliographQueueGrowing"]
    eventually(lambda: not any(fires(prometheus, name) for name in ended), 60, "the end of the alerts")

    def late() -> float:
        """The number of the new process' pushes that took more than 5 s."""
        delay = "heliograph_event_to_accepted_seconds"
        labels = f'{{app="{APP}",lane="interactive",service="apns-sender"'
        return sum(float(one["value"][1]) for one in prometheus.query(
            f'{delay}_count{labels}}} - ignoring (le) {delay}_bucket{labels},le="5"}}'))

    eventually(lambda: late() >= 8, 30, "late pushes")


def test_late_events_fire_the_alert_about_lateness(stack, phones, prometheus):
    user, token = f"m-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)

    def is_late() -> bool:
        # An event that waited for a minute before it was published, as after an outage of its publisher.
        tell(stack, user, timestamp=int(time.time()) - 60)
        return all(fires(prometheus, name, lane="interactive") for name in alerts)

    # The shortened windows of both alerts are the same, so the same events fire both.
    alerts = ("HeliographPushesLate", "HeliographPushesLateSlowly")
    eventually(is_late, 60, "the alerts about late pushes")
    eventually(lambda: not any(fires(prometheus, name, lane="interactive") for name in alerts), 90, "their end")


def test_a_paused_route_fires_its_alert(stack, phones, prometheus):
    user, token = f"m-{uuid.uuid4()}", uuid.uuid4().hex
    phones(APP, user, token)
    route = {"provider": "apns", "app": APP, "environment": "production"}
    stack.service("stop", "provider-simulator")
    try:
        tell(stack, user)
        eventually(lambda: fires(prometheus, "HeliographRoutePaused", **route), 60, "the route's alert")
    finally:
        stack.service("start", "provider-simulator")
    eventually(lambda: not fires(prometheus, "HeliographRoutePaused", **route), 90, "the end of the alert")
    eventually(lambda: len(requests_of(stack, token)) == 1, 120, "the push")


def test_an_invalid_event_fires_the_alert_about_dead_letters(stack, prometheus):
    queue = f"rules.events.app.{APP}"
    stack.publish(f"{APP}.{TYPE}", b"not JSON")
    alert = {"stage": "rules", "queue": queue, "reason": "not-json"}
    try:
        eventually(lambda: fires(prometheus, "HeliographDeadLetters", **alert), 30, "the alert about dead letters")
    finally:
        eventually(lambda: stack.take(f"{queue}.dead"), 30, "the dead letter")
    eventually(lambda: not fires(prometheus, "HeliographDeadLetters", **alert), 60, "the end of the alert")
