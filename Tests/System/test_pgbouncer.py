"""The services behind PgBouncer in transaction mode, with the configuration of deploy/kubernetes/components/pgbouncer."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import uuid

import pytest

from local_stack import eventually, sql
from port_reservation import free_port_base
from test_token_deactivation import requests_of
from upstream import chat_event

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPONENT = ROOT / "deploy" / "kubernetes" / "components" / "pgbouncer"
SERVICES = ("rules", "token-registry", "feedback", "events-api")
APP, TYPE = "family-portal", "chat.message.created"


def database_ini() -> str:
    """The example of database.ini in the README."""
    page = (ROOT / "deploy" / "kubernetes" / "README.md").read_text()
    block = re.search(r"^    \[databases\]\n((?:    .*\n)+)", page, re.M)
    assert block, "the README has no example of database.ini"
    return "[databases]\n" + block[1].replace("    ", "", 1)


@pytest.fixture
def pooler(stack):
    """The port of a running PgBouncer. It refuses to run as root, and its folder belongs to its user."""
    folder, port = pathlib.Path(tempfile.mkdtemp()), free_port_base()
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    text = (COMPONENT / "pgbouncer.ini").read_text().replace("/run/secrets/pgbouncer", str(folder))
    # Differences from production: the local database has no TLS, and all listen on this machine.
    for name, value in {"listen_addr": "127.0.0.1", "listen_port": port, "server_tls_sslmode": "disable"}.items():
        text, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.M)
        assert count == 1, name
    database = re.sub(r"host=\S+ port=\d+", f"host=127.0.0.1 port={stack.port_base + 3}", database_ini())
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "1",
         "-subj", "/CN=localhost", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
        capture_output=True, timeout=30, check=True)
    shutil.copy(folder / "tls.crt", folder / "ca.pem")
    (folder / "userlist.txt").write_text(sql(stack, """
        SELECT format('"%s" "%s"', rolname, rolpassword) FROM pg_authid
        WHERE rolname IN ('rules', 'token-registry', 'feedback', 'events-api')""") + "\n")
    (folder / "database.ini").write_text(database)
    (folder / "pgbouncer.ini").write_text(text)
    if user:
        for path in [folder, *folder.iterdir()]:
            os.chown(path, user["user"], user["group"])
    with open(stack.state / "log" / "pgbouncer.log", "w") as log:
        process = subprocess.Popen(
            [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", folder / "pgbouncer.ini"], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, **user)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


@pytest.fixture
def pooled(stack, pooler):
    """The services with a database, restarted with addresses of the pooler and without prepared statements."""
    settings = stack.state / "environment"
    settings.mkdir(exist_ok=True)
    proxies = stack.state / "proxies"

    assert not proxies.exists()
    proxies.write_text("".join(f"{service} {stack.port_base + 3} {pooler}\n" for service in SERVICES))
    for service in SERVICES:
        (settings / service).write_text("DATABASE_STATEMENTS=unnamed\n")
    try:
        stack.restart_all(*SERVICES)
        yield pooler
    finally:
        proxies.unlink()
        for service in SERVICES:
            (settings / service).unlink()
        stack.restart_all(*SERVICES)


def test_services_share_the_connections_of_a_pooler_in_transaction_mode(stack, pooled, phones):
    users = [f"b-{uuid.uuid4()}" for _ in range(20)]
    tokens = {user: uuid.uuid4().hex for user in users}
    for user in users:
        phones(APP, user, tokens[user])
    events = [str(uuid.uuid4()) for _ in range(100)]
    with stack.channel() as channel:
        for number, event in enumerate(events):
            channel.basic_publish("events", f"{APP}.{TYPE}", chat_event(users[number % len(users)], event))
    pushed = lambda: sum(len(requests_of(stack, token)) for token in tokens.values())  # noqa: E731
    eventually(lambda: pushed() == len(events), 60, "all pushes")
    eventually(lambda: all(stack.is_answered(event) for event in events), 60, "all outcomes")
    # Each connection to the database is the pooler's: no more than the pool of each service's user.
    connections = dict(line.split("|") for line in sql(
        stack, "SELECT usename, count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1"
    ).splitlines())
    assert all(1 <= int(connections[service]) <= 10 for service in ("rules", "token-registry")), connections
    # No statement was prepared, and the database's own time-outs hold.
    assert sql(stack, "SELECT count(*) FROM pg_prepared_statements") == "0"
    log = "".join((stack.state / "log" / f"{service}.log").read_text() for service in SERVICES)
    assert "prepared statement" not in log


def test_the_pooler_sets_the_time_outs_and_has_no_console(stack, pooler):
    password = (stack.state / "secrets" / "database-rules").read_text().strip()

    def ask(database: str, query: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["psql", "-XAtq", f"host=127.0.0.1 port={pooler} user=rules dbname={database}"], input=query,
            env={**os.environ, "PGPASSWORD": password, **environment}, capture_output=True, text=True, timeout=20)

    shown = eventually(
        lambda: ask("heliograph", "SHOW statement_timeout; SHOW lock_timeout; "
                    "SHOW idle_in_transaction_session_timeout; SHOW client_connection_check_interval;",
                    PGSSLMODE="require").stdout.split(), 20, "the pooler")
    assert shown == ["5s", "1s", "10s", "1s"]
    assert "no TLS" in ask("heliograph", "SELECT 1", PGSSLMODE="disable").stderr or "SSL required" in ask(
        "heliograph", "SELECT 1", PGSSLMODE="disable").stderr
    assert ask("pgbouncer", "SHOW POOLS", PGSSLMODE="require").returncode != 0
    assert ask("heliograph", "SELECT 1", PGSSLMODE="require", PGPASSWORD="wrong").returncode != 0
