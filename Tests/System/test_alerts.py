"""Alerts of dependencies, files, rows and providers on a running Prometheus: their causes fire and resolve each of them.

`test_monitoring.py` has the alerts about lateness, queues, processes and dead letters. deploy/operations/alerts.md lists the
alerts that cannot be caused here. The rules are those of deploy/monitoring with shorter waits (`monitoring.hasty`).
"""

import contextlib
import datetime
import json
import pathlib
import re
import subprocess
import threading
import time
import uuid

import yaml

import monitoring
from chaos_census import await_one
from local_stack import cloud_event, eventually, sql
from test_monitoring import APP, fires, prometheus, tell  # noqa: F401
from test_token_deactivation import requests_of, script
import test_token_spike as spike
from test_token_spike import quarantine  # noqa: F401


def test_each_alert_is_caused_or_listed_with_a_reason():
    rules = yaml.safe_load(monitoring.RULES.read_text())
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    here = pathlib.Path(__file__).parent
    caused = {name for file in ("test_alerts.py", "test_monitoring.py")
              for name in re.findall(r'"(Heliograph\w+)"', (here / file).read_text())}
    page = (monitoring.ROOT / "deploy" / "operations" / "alerts.md").read_text()
    listed = set(re.findall(r"^\| `(Heliograph\w+)` \|", page, re.M))
    assert caused | listed == alerts and not caused & listed


def ends(prometheus, *names: str, within: float = 60) -> None:
    eventually(lambda: not any(fires(prometheus, name) for name in names), within, f"the end of {', '.join(names)}")


def phone(stack, phones, platform: str = "ios") -> tuple[str, str]:
    """A user and the token of its phone."""
    user = f"al-{uuid.uuid4()}"
    token = uuid.uuid4().hex if platform == "ios" else f"fcm:{user}"
    phones(APP, user, token, platform=platform)
    return user, token


def with_settings(stack, service: str, text: str) -> None:
    """Restarts a service with further settings; with none, with its own."""
    file = stack.state / "environment" / service
    file.parent.mkdir(exist_ok=True)
    file.write_text(text) if text else file.unlink(missing_ok=True)
    stack.restart_all(service)


def test_a_stopped_database_fires_alerts_about_dependencies_requests_and_old_messages(stack, phones, prometheus):
    user, token = phone(stack, phones)
    bearer = stack.bearer(APP, user)
    alerts = ("HeliographDependencyAway", "HeliographDegraded", "HeliographNotReady", "HeliographHTTPErrors",
              "HeliographQueueOld")
    left = list(alerts)
    stack.service("stop", "database")
    try:
        # Published two minutes before it arrived: the message at the head of the queue is old, and waits.
        tell(stack, user, timestamp=int(time.time()) - 120)

        def fired() -> bool:
            stack.register(APP, user, token, bearer=bearer)
            left[:] = [name for name in left if not fires(prometheus, name)]
            return not left

        try:
            eventually(fired, 75, "the alerts of a stopped database")
        except AssertionError:
            raise AssertionError(f"alerts that did not fire: {left}") from None
    finally:
        stack.service("start", "database")
        stack.service("ready", "database")
    eventually(lambda: len(requests_of(stack, token)) == 1, 60, "the push")
    ends(prometheus, *alerts)


@contextlib.contextmanager
def session(stack, statements: str):
    """A database session that runs statements during the block, and ends with it."""
    name = f"alerts-{uuid.uuid4()}"
    process = subprocess.Popen(
        ["psql", "-XAtq", f"{stack.env['DATABASE_URL']}?application_name={name}", "-v", "ON_ERROR_STOP=1", "-c", statements],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "the session ended before the block"
    finally:
        sql(stack, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")
        process.wait(30)


def test_a_locked_table_fires_the_alert_about_the_connections_of_a_service(stack, prometheus):
    alert, stop = "HeliographDatabasePoolExhausted", threading.Event()
    headers = {"Authorization": f"Bearer {stack.bearer(APP, f'al-{uuid.uuid4()}')}"}

    def ask() -> None:
        while not stop.is_set():
            stack.http("GET", f"{stack.env['RULES_URL']}/v1/inbox", headers=headers)

    threads = [threading.Thread(target=ask) for _ in range(40)]
    with session(stack, "BEGIN; LOCK TABLE rules.inbox IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)"):
        eventually(lambda: sql(stack, "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'rules.inbox'::regclass "
                                      "AND mode = 'AccessExclusiveLock'") == "1", 30, "the lock")
        try:
            for thread in threads:
                thread.start()
                # One after another, so that their time-outs do not end together.
                stop.wait(0.05)
            eventually(lambda: fires(prometheus, alert, service="rules"), 120, "the alert about connections")
        finally:
            stop.set()
    for thread in threads:
        thread.join(60)
    ends(prometheus, alert)


def test_a_lost_message_fires_the_alert_about_a_gap_in_the_census_until_it_is_found(stack, phones, prometheus):
    (user, token), queue = phone(stack, phones), f"token-registry.notifications.interactive.app.{APP}"
    stack.service("stop", "token-registry")
    try:
        tell(stack, user)
        await_one(stack, queue)
        with stack.channel() as channel:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
    finally:
        stack.service("start", "token-registry")
    gap = {"app": APP, "state": "missing-registry"}
    eventually(lambda: fires(prometheus, "HeliographCensusGap", **gap), 120, "the alert about the gap")
    with stack.channel() as channel:
        channel.basic_publish(method.exchange, method.routing_key, body, properties, mandatory=True)
    eventually(lambda: len(requests_of(stack, token)) == 1, 60, "the push")
    ends(prometheus, "HeliographCensusGap", within=180)


def test_a_census_that_does_not_count_fires_its_alert(stack, prometheus):
    # The row that a process leaves which took the lease, counted 20 minutes ago, and has been stuck since.
    lease = "UPDATE rules.census_lease SET process = gen_random_uuid(), renewed_at = {}, counted_at = {}"
    eventually(lambda: sql(stack, "SELECT count(*) FROM rules.census_lease WHERE counted_at IS NOT NULL") == "1", 60,
               "the first count of the census")
    sql(stack, lease.format("clock_timestamp() + interval '1 hour'", "clock_timestamp() - interval '20 minutes'"))
    try:
        eventually(lambda: fires(prometheus, "HeliographCensusOld"), 60, "the alert about the census")
    finally:
        sql(stack, lease.format("'-infinity'", "counted_at"))
    ends(prometheus, "HeliographCensusOld")


def test_notifications_that_are_released_late_fire_their_alert(stack, prometheus):
    app, user, count = "monolite-hr", f"al-{uuid.uuid4()}", 80
    now = datetime.datetime.now(datetime.timezone.utc)
    quiet = {name: (now + datetime.timedelta(hours=hours)).strftime("%H:%M") for name, hours in (("start", -2), ("end", 4))}
    sql(stack, "INSERT INTO rules.person (app, user_id, settings) "
               f"VALUES ('{app}', '{user}', '{json.dumps({'zone': 'UTC', 'quiet_hours': quiet})}')")
    for _ in range(count):
        event = str(uuid.uuid4())
        data = {"request": {"id": event, "kind": "k", "from": "2026-07-01", "until": "2026-07-02"}, "worker": {"id": user}}
        stack.publish(f"{app}.request.approved", cloud_event("request.approved", data, event),
                      content_type="application/cloudevents+json")
    held = f"SELECT count(*) FROM rules.held WHERE user_id = '{user}' AND leaving IS NULL"
    eventually(lambda: sql(stack, held) == str(count), 60, "the held notifications")
    # Each of them was due three minutes before its turn. It is held again, because the quiet hours go on.
    late = f"""DO $$ BEGIN FOR turn IN 1..6000 LOOP
        UPDATE rules.held SET due_at = clock_timestamp() - interval '3 minutes' WHERE notification = (
            SELECT notification FROM rules.held WHERE user_id = '{user}' AND leaving IS NULL AND due_at > clock_timestamp()
            ORDER BY quiet_holds LIMIT 1);
        COMMIT; PERFORM pg_sleep(0.2); END LOOP; END $$"""
    try:
        with session(stack, late):
            eventually(lambda: fires(prometheus, "HeliographDueLate", work="held"), 60, "the alert about late releases")
    finally:
        sql(stack, f"DELETE FROM rules.held WHERE user_id = '{user}'")
    ends(prometheus, "HeliographDueLate")


def test_a_memory_alarm_of_the_broker_fires_its_alert(stack, prometheus):
    def limit(value: str) -> None:
        subprocess.run([stack.state / "rabbitmqctl", "-q", "set_vm_memory_high_watermark", *value.split()],
                       stdin=subprocess.DEVNULL, check=True, timeout=60)

    limit("absolute 1MB")
    try:
        eventually(lambda: fires(prometheus, "HeliographBrokerBlocked"), 60, "the alert about a blocked broker")
    finally:
        limit("0.4")
    ends(prometheus, "HeliographBrokerBlocked")


def test_a_faulty_rule_file_fires_its_alert(stack, prometheus):
    file = stack.state / "rule-files" / f"{APP}.yaml"
    target = file.resolve()

    def replace(write) -> None:
        new = file.with_name(".new")
        write(new)
        new.rename(file)

    replace(lambda new: new.write_text("rules: [\n"))
    try:
        eventually(lambda: fires(prometheus, "HeliographRuleFilesRefused"), 45, "the alert about rule files")
    finally:
        replace(lambda new: new.symlink_to(target))
    ends(prometheus, "HeliographRuleFilesRefused")


def test_an_unreadable_token_fires_its_alert(stack, phones, prometheus):
    user, token = phone(stack, phones)
    sql(stack, "UPDATE registry.registration SET token = regexp_replace(token, '^v1 \\S+ ', 'v1 lost ') "
               f"WHERE user_id = '{user}'")
    tell(stack, user)
    eventually(lambda: fires(prometheus, "HeliographTokensUnreadable", reason="key-unknown"), 45, "the alert")
    phones(APP, user, token)
    ends(prometheus, "HeliographTokensUnreadable")


def test_a_dead_row_fires_its_alert(stack, prometheus):
    sql(stack, "INSERT INTO registry.outbox (past, app, user_id) VALUES ('registered', 'No App', 'nobody')")
    try:
        eventually(lambda: fires(prometheus, "HeliographDeadRows", table="registry.outbox"), 45, "the alert")
    finally:
        code, output = stack.pushctl("dead-rows", "drop", "--table", "registry.outbox", "--yes")
        assert code == 0, output
    ends(prometheus, "HeliographDeadRows")


def test_a_certificate_that_expires_soon_and_an_unusable_one_fire_their_alerts(stack, prometheus, tmp_path):
    certificate, apps = tmp_path / "push.pem", tmp_path / "apps.yaml"
    catalog = yaml.safe_load((stack.state / "apps.yaml").read_text())
    topic = catalog["apps"][APP]["apns"]["topic"]
    catalog["apps"][APP]["apns"] = {
        "topic": topic, "certificates": {"production": {"certificate-file": str(certificate)}}}
    apps.write_text(yaml.safe_dump(catalog))
    done = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "5", "-subj", f"/UID={topic}/CN={topic}",
         "-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem"], capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    certificate.write_text((tmp_path / "certificate.pem").read_text() + (tmp_path / "key.pem").read_text())
    alerts = ("HeliographCertificateExpires", "HeliographCredentialRefused")
    try:
        with_settings(stack, "apns-sender", f"HELIOGRAPH_APPS={apps}\n")
        eventually(lambda: fires(prometheus, alerts[0], app=APP), 45, "the alert about the certificate")
        certificate.write_text("no certificate\n")
        eventually(lambda: fires(prometheus, alerts[1], provider="apns"), 45, "the alert about the credential")
    finally:
        with_settings(stack, "apns-sender", "")
    ends(prometheus, *alerts)


def test_a_spike_of_bad_tokens_fires_the_alerts_about_the_guard_and_the_quarantine(
        stack, phones, quarantine, prometheus):  # noqa: F811
    tokens = spike.people(stack, 40)
    for token in list(tokens.values())[:25]:
        script(stack, provider="apns", token=token, status=410, reason="Unregistered", timestamp=spike.later())
    spike.tell(stack, list(tokens))
    route = {"provider": "apns", "app": APP, "environment": "development"}
    eventually(lambda: fires(prometheus, "HeliographGuardTripped", **route), 60, "the alert about the guard")
    eventually(lambda: fires(prometheus, "HeliographQuarantine", app=APP), 60, "the alert about the quarantine")
    quarantine("discard", "--all")
    ends(prometheus, "HeliographGuardTripped", "HeliographQuarantine", within=150)


def test_a_missing_key_at_the_provider_fires_its_alert(stack, phones, prometheus):
    user, token = phone(stack, phones, "android")
    script(stack, provider="fcm", token=token, error_code="THIRD_PARTY_AUTH_ERROR")
    try:
        tell(stack, user)
        eventually(lambda: fires(prometheus, "HeliographThirdPartyPaused", provider="fcm", app=APP), 60, "the alert")
    finally:
        stack.http("DELETE", f"{stack.env['SIMULATOR_URL']}/outcomes")
    ends(prometheus, "HeliographThirdPartyPaused", within=120)


def test_slow_responses_of_a_provider_fire_its_alert(stack, phones, prometheus):
    (user, token), provider = phone(stack, phones), "apns"
    script(stack, provider=provider, token=token, status=200, delay_ms=6000)

    def slow() -> bool:
        tell(stack, user)
        return fires(prometheus, "HeliographProviderSlow", provider=provider)

    try:
        eventually(slow, 60, "the alert about slow responses")
    finally:
        stack.http("DELETE", f"{stack.env['SIMULATOR_URL']}/outcomes")
    ends(prometheus, "HeliographProviderSlow")
