"""Reports for upstream services: the queue that an upstream reads, and signed webhooks."""

import collections
import http.server
import json
import re
import subprocess
import threading
import urllib.parse
import uuid

import pika
import pytest

from conftest import ROOT
from local_stack import eventually
from test_products import REQUEST, Product
from test_token_deactivation import script

APP = "monolite-hr"
QUEUE = f"upstream.reports.{APP}"
SECRETS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]
DELIVERY, RECEIPT, DEAD = (
    "heliograph.notification.reported", "heliograph.receipt.recorded", "heliograph.device.deactivated")
SERVICES = ("rules", "token-registry", "webhook-sender")


class Receiver(http.server.ThreadingHTTPServer):
    """Records requests. Answers 200, or the next status that a test has set for the path and the report's user."""

    daemon_threads = True

    def __init__(self):
        self.seen: list[tuple[str, dict, bytes]] = []
        self.answers: dict[tuple[str, str], collections.deque] = collections.defaultdict(collections.deque)
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def requests(self, path: str, type: str, user: str) -> list[tuple[dict, bytes]]:
        """The headers and bodies of the reports of one type about one user."""
        found = []
        for seen, headers, body in list(self.seen):
            report = json.loads(body)
            if seen == path and report["type"] == type and report["data"]["user_id"] == user:
                found.append((headers, body))
        return found


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        answers = self.server.answers[self.path, json.loads(body)["data"]["user_id"]]
        self.send_response(answers.popleft() if answers else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def receiver(stack):
    """The stack with a queue of reports and four webhooks for one app."""
    receiver = Receiver()
    url = f"http://127.0.0.1:{receiver.server_address[1]}"
    secrets = stack.state / "credentials" / "hooks.secrets"
    secrets.write_text("\n".join(SECRETS))
    apps = stack.state / "apps.yaml"
    before = apps.read_text()
    hooks = [("good", f"{url}/good", ""), ("flaky", f"{url}/flaky", "delivery"), ("gone", f"{url}/gone", "receipt"),
             ("metadata", "https://169.254.169.254/latest", "receipt")]
    lines = "".join(
        f"      - {{ name: {name}, url: \"{url}\", secret-file: {secrets}{f', events: [{kinds}]' if kinds else ''} }}\n"
        for name, url, kinds in hooks)
    apps.write_text(before.replace(
        f"  {APP}:\n", f"  {APP}:\n    reports: {{ queue: true }}\n    webhooks:\n{lines}", 1))
    settings = stack.state / "environment" / "webhook-sender"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS=yes\nHELIOGRAPH_ALLOW_PLAINTEXT=yes\n"
                        "WEBHOOK_PROBE_INTERVAL=1s\n")
    code, output = stack.pushctl("topology", "apply")
    assert code == 0, output
    stack.restart_all(*SERVICES)
    yield receiver
    apps.write_text(before)
    settings.unlink()
    code, output = stack.pushctl("topology", "apply")
    assert code == 0, output
    with stack.channel() as channel:
        for name, *_ in hooks:
            for queue in (queue_of(name), f"{queue_of(name)}.dead"):
                channel.queue_delete(queue)
        channel.queue_delete(QUEUE)
    stack.restart_all(*SERVICES)
    receiver.shutdown()


def queue_of(webhook: str) -> str:
    return f"webhook-sender.reports.{APP}.{webhook}"


@pytest.fixture
def worker(stack, phones, receiver):
    """A user with one phone, who was told of a decision."""
    hr = Product(stack, phones, APP, "fcm")
    user = hr.person("worker")
    hr.event = hr.happen("request.approved", request=REQUEST, worker={"id": user})
    hr.got(user, 1)
    return hr, user


def tell_again(hr: Product, user: str) -> None:
    hr.happen("request.rejected", request={**REQUEST, "id": uuid.uuid4().hex}, worker={"id": user}, reason="No")


def give_receipt(stack, user: str, notification: str) -> None:
    status, answer = stack.http(
        "POST", f"{stack.env['RULES_URL']}/v1/receipts", {"receipts": [{"id": notification, "what": "opened"}]},
        {"Authorization": f"Bearer {stack.bearer(APP, user)}"})
    assert status == 204, answer


def notification_of(receiver: Receiver, user: str) -> str:
    """The notification of the user's first report."""
    _, body = eventually(lambda: receiver.requests("/good", DELIVERY, user), 60, "a delivery report")[0]
    return json.loads(body)["data"]["notification_id"]


def dead_letters(stack, webhook: str) -> list[dict]:
    code, output = stack.pushctl("dead", "show", queue_of(webhook), "--json")
    assert code == 0, output
    return json.loads(output)["dead_letters"]


def verify():
    """The function of the page."""
    page = (ROOT / "deploy" / "operations" / "webhooks.md").read_text()
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)
    return names["verify"]


@pytest.fixture
def upstream(stack):
    """Opens a channel as the upstream of an app."""
    connections = []

    def channel(app: str):
        url = urllib.parse.urlsplit(stack.env["AMQP_NODE_URLS"].split()[0])
        password = (stack.state / "secrets" / f"broker-upstream-{app}").read_text().strip()
        connections.append(pika.BlockingConnection(
            pika.URLParameters(f"amqp://upstream-{app}:{password}@{url.hostname}:{url.port}/heliograph")))
        return connections[-1].channel()

    yield channel
    for connection in connections:
        connection.close()


def test_an_upstream_reads_the_reports_of_its_app_and_no_others(stack, receiver, worker, upstream):
    hr, user = worker
    channel, reports = upstream(APP), []

    def report(type: str, **data):
        """The report with this data; reads the queue."""
        while (message := channel.basic_get(QUEUE, auto_ack=True))[0]:
            reports.append(json.loads(message[2]))
        return next((r["data"] for r in reports if r["type"] == type and data.items() <= r["data"].items()), None)

    told = eventually(
        lambda: report(DELIVERY, user_id=user, event_id=hr.event, devices_notified=1), 60, "the delivery report")
    give_receipt(stack, user, told["notification_id"])
    opened = eventually(lambda: report(RECEIPT, user_id=user), what="the receipt")
    assert (opened["receipt"], opened["event_id"]) == ("opened", hr.event)
    script(stack, provider="fcm", token=hr.tokens[user], status=404, error_code="UNREGISTERED", count=1)
    tell_again(hr, user)
    dead = eventually(lambda: report(DEAD, user_id=user), 60, "the dead device")
    assert (dead["provider"], dead["change"]) == ("fcm", "deactivated")
    assert hr.tokens[user] not in json.dumps(reports)
    for app, queue in (("family-portal", QUEUE), (APP, queue_of("good")), (APP, "upstream.reports.family-portal")):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refusal:
            upstream(app).basic_get(queue)
        assert refusal.value.reply_code == 403


def test_reports_arrive_signed_and_an_unavailable_receiver_gets_them_again(stack, receiver, worker):
    hr, user = worker
    is_authentic = verify()
    receiver.answers["/flaky", user].append(503)
    tell_again(hr, user)
    give_receipt(stack, user, notification_of(receiver, user))
    for type in (DELIVERY, RECEIPT):
        headers, body = eventually(lambda: receiver.requests("/good", type, user), 60, type)[0]
        assert headers["content-type"] == "application/cloudevents+json"
        assert headers["webhook-id"] == json.loads(body)["id"]
        assert [is_authentic(headers, body, secret) for secret in SECRETS] == [True, True]
        assert not is_authentic(headers, body + b" ", SECRETS[0])
        assert not is_authentic({**headers, "webhook-timestamp": "1"}, body, SECRETS[0])
        assert len(headers["webhook-signature"].split()) == 2

    def repeated() -> bool:
        ids = collections.Counter(headers["webhook-id"] for headers, _ in receiver.requests("/flaky", DELIVERY, user))
        return any(count > 1 for count in ids.values())

    eventually(repeated, 60, "the second attempt under the same id")
    # After the pause all reports have arrived.
    wanted = {json.loads(body)["id"] for _, body in receiver.requests("/good", DELIVERY, user)}
    eventually(lambda: wanted <= {json.loads(body)["id"] for _, body in receiver.requests("/flaky", DELIVERY, user)},
               60, "all reports at the flaky receiver")


def test_a_receiver_that_is_gone_and_a_forbidden_address_get_dead_letters_and_a_replay_delivers(stack, receiver, worker):
    hr, user = worker
    receiver.answers["/gone", user].append(410)
    notification = notification_of(receiver, user)
    give_receipt(stack, user, notification)
    eventually(lambda: dead_letters(stack, "gone"), what="the dead letter of the receiver that is gone")
    (letter,) = dead_letters(stack, "gone")
    assert letter["reason"] == "webhook-gone"
    eventually(lambda: dead_letters(stack, "metadata"), what="the dead letter of the forbidden address")
    letter = dead_letters(stack, "metadata")[0]
    assert (letter["reason"], letter["detail"]) == ("webhook-refused", "169.254.169.254 is a link-local address")
    status, health = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('webhook-sender')}/health/ready")
    assert status == 200 and "the webhook metadata of monolite-hr gets no reports" in json.dumps(health)
    code, output = stack.pushctl("dead", "replay", queue_of("gone"))
    assert code == 0 and "replayed: 1" in output, output
    eventually(lambda: len(receiver.requests("/gone", RECEIPT, user)) == 2, what="the replayed report")
    first, second = (headers["webhook-id"] for headers, _ in receiver.requests("/gone", RECEIPT, user))
    assert first == second and dead_letters(stack, "gone") == []


def test_app_check_finds_a_webhook_to_a_private_address(stack, tmp_path):
    pushctl = stack.product("pushctl")
    folder = tmp_path / "shop"
    done = subprocess.run([pushctl, "app", "new", "shop", "--folder", folder, "--simulated", "--bundle-id", "com.example.shop"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (folder / "hooks.secrets").write_text(SECRETS[0])
    (folder / "hooks.secrets").chmod(0o600)
    apps = folder / "apps.yaml"
    text = apps.read_text().rstrip()
    apps.write_text(f"{text}\n    webhooks:\n      - {{ name: crm, url: \"https://10.0.0.1/x\", secret-file: hooks.secrets }}\n")
    done = subprocess.run([pushctl, "app", "check", folder], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "the webhook crm is refused: 10.0.0.1 is a private address" in done.stdout + done.stderr
    done = subprocess.run([pushctl, "app", "check", folder], capture_output=True, text=True, timeout=60,
                          env={"HELIOGRAPH_WEBHOOK_PRIVATE_NETWORKS": "yes", "PATH": "/usr/bin:/bin"})
    assert "10.0.0.1" not in done.stdout + done.stderr
