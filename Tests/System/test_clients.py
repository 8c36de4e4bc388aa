"""The client code of deploy/clients against a running stack: a phone in Swift, one in Kotlin, and a web page."""

import json
import pathlib
import queue
import subprocess
import threading
import time
import uuid

import pytest

from browser import chromium
from client_proxy import Proxy
from local_stack import ROOT, cloud_event, eventually, sql
from web_push import Browser

APP = "family-portal"
CLIENTS = ROOT / "deploy" / "clients"
BUILD = ROOT / ".build" / "clients"
JSON_JAR = "/usr/share/java/com.android.json.jar"


@pytest.fixture
def proxy(stack):
    proxy = Proxy(stack)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def swift_phone() -> list[str]:
    """The command of the Swift package's example. Builds its tests too."""
    run(["swift", "build", "--package-path", CLIENTS / "swift", "--scratch-path", BUILD, "--build-tests"])
    return [str(BUILD / "debug" / "heliograph-example")]


@pytest.fixture(scope="session")
def kotlin_phone(tmp_path_factory) -> list[str]:
    """The command of Phone.kt, compiled with Heliograph.kt and Android's implementation of org.json."""
    jar = tmp_path_factory.mktemp("kotlin") / "phone.jar"
    sources = [CLIENTS / "android" / "Heliograph.kt", pathlib.Path(__file__).parent / "clients" / "Phone.kt"]
    run(["kotlinc", "-no-reflect", "-include-runtime", "-cp", JSON_JAR, *sources, "-d", jar])
    # The JDK's HttpURLConnection has no PATCH; Phone.kt sets the method of its superclass.
    return ["java", "--add-opens", "java.base/java.net=ALL-UNNAMED", "-cp", f"{jar}:{JSON_JAR}", "PhoneKt"]


def run(command: list) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]


class Phone:
    """A process with a client: takes commands, and prints an answer for each, and the items of its stream."""

    def __init__(self, command: list[str], stack, proxy: Proxy, user: str, state: pathlib.Path):
        environment = {
            "PATH": "/usr/bin:/bin", "HOME": str(state), "REGISTRY_URL": f"{proxy.url}/registry",
            "RULES_URL": f"{proxy.url}/rules", "EVENTS_API_URL": f"{proxy.url}/events", "HELIOGRAPH_BEARER": stack.bearer(APP, user), "HELIOGRAPH_STATE": str(state)}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answers: queue.Queue[str] = queue.Queue()
        # The lines of the stream, which arrive at any time.
        self.events: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            is_event = line.startswith(("item ", "removed ", "connected"))
            (self.events if is_event else self.answers).put(line.rstrip("\n"))

    def do(self, command: str, answer: str | None = None) -> None:
        """Gives a command, and expects its answer."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        if answer:
            assert self.next(self.answers) == answer, command

    def event(self) -> str:
        """The next line of the stream."""
        return self.next(self.events)

    def next(self, lines: queue.Queue) -> str:
        try:
            return lines.get(timeout=60)
        except queue.Empty:
            raise AssertionError(f"the phone printed nothing within 60 s; it ended: {self.process.poll()}")

    def stop(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0, self.process.stderr.read()[-2000:]


def say(stack, user: str, thread: str | None = None) -> str:
    """Publishes a chat message to the user, and returns the event's id once it is decided."""
    event = str(uuid.uuid4())
    data = {"message": {"id": event, "text": "Dinner?", "thread_id": thread}, "sender": {"id": "writer", "name": "Pat"},
            "participants": [user]}
    stack.publish(
        f"{APP}.chat.message.created", cloud_event("chat.message.created", data, event),
        content_type="application/cloudevents+json")
    eventually(lambda: explanation(stack, event), what="the decision")
    return event


def explanation(stack, event: str) -> str:
    code, output = stack.pushctl("explain", event, "--app", APP)
    return output if code == 0 else ""


def devices(stack, user: str) -> dict[str, str]:
    """The state of each of the user's devices, by the first four characters of the token."""
    status, answer = stack.http(
        "GET", f"{stack.env['REGISTRY_URL']}/v1/operator/devices?app={APP}&user={user}",
        headers={"Authorization": f"Bearer {stack.env['REGISTRY_OPERATOR_KEY']}"})
    assert status == 200, answer
    return {device["token"][:4]: device["state"] for device in answer["devices"]}


@pytest.mark.parametrize("kind", ["swift", "kotlin"])
def test_a_phone_registers_rotates_receives_reads_and_signs_out(stack, proxy, tmp_path, request, kind):
    command = request.getfixturevalue(f"{kind}_phone")
    user = f"{kind}-{uuid.uuid4().hex[:8]}"
    first, second = "aaaa" + uuid.uuid4().hex[:28] * 2, "bbbb" + uuid.uuid4().hex[:28] * 2
    phone = Phone(command, stack, proxy, user, tmp_path)
    phone.do(f"token {first}", "unchanged")
    proxy.refuse(1)
    phone.do(f"sign-in {user}", "registered")
    assert devices(stack, user) == {"aaaa": "active"}
    phone.do(f"token {second}", "registered")
    assert devices(stack, user)["bbbb"] == "active" and devices(stack, user)["aaaa"] != "active"
    phone.do("test", "test wanted accepted")
    phone.stop()

    phone = Phone(command, stack, proxy, user, tmp_path)
    phone.do(f"sign-in {user}", "unchanged")
    phone.do("listen")
    assert phone.event() == "connected"
    say(stack, user)
    item = phone.event().split(" ", 2)
    assert (item[0], item[2]) == ("item", "New message")
    phone.do("inbox", "inbox 1 1")

    # The item that arrives while the stream is away comes after the reconnect.
    proxy.refuse(1)
    assert proxy.cut_streams() == 1
    say(stack, user)
    assert phone.event() == "connected"
    missed = phone.event().split(" ")
    assert missed[0] == "item" and missed[1] != item[1]
    ids = proxy.last_event_ids()
    assert ids[0] is None and ids[-1] is not None and len(ids) == 3

    phone.do(f"read {item[1]}", "unread 1")
    phone.do(f"opened {missed[1]}", "reported")
    phone.do("inbox", "inbox 2 0")
    # An item that another device deletes leaves the open list.
    status, _ = stack.http("DELETE", f"{stack.env['RULES_URL']}/v1/inbox/{item[1]}",
                           headers={"Authorization": f"Bearer {stack.bearer(APP, user)}"})
    assert (status, phone.event()) == (204, f"removed {item[1]}")
    if kind == "kotlin":
        phone.do('cleared ["5b0c","room/1"]', "cleared 5b0c room/1")
        phone.do("cleared no JSON", "cleared ")
    assert sql(stack, f"SELECT what FROM rules.receipt WHERE notification = '{missed[1]}'") == "opened"

    phone.do("appear 9", "present")
    assert "inbox  (present)" in explanation(stack, say(stack, user, "9"))
    phone.do("disappear", "absent")
    phone.do("mute thread/7", "muted true")
    assert "inbox  (muted)" in explanation(stack, say(stack, user, "7"))
    phone.do("type chat", "type off")

    phone.do("sign-out", "signed-out")
    assert devices(stack, user)["bbbb"] == "signed-out"
    phone.stop()


def test_the_swift_package_passes_its_tests(swift_phone):
    run(["swift", "test", "--package-path", CLIENTS / "swift", "--scratch-path", BUILD, "--skip-build"])


ROWS = """[...document.querySelectorAll("#items li")].map((row) => [row.dataset.id, row.dataset.read, row.textContent])"""


@pytest.fixture
def page(stack, proxy, tmp_path):
    proxy.user = f"web-{uuid.uuid4().hex[:8]}"
    proxy.bearer = stack.bearer(APP, proxy.user)
    with chromium(tmp_path) as page:
        page.go(proxy.url + "/inbox.html")
        eventually(lambda: page.ask("document.body?.dataset.live") == "yes", what="the page is live")
        # Lost by a reload, so content that appears while it is set arrived live.
        page.ask("window.neverReloaded = true")
        yield page


def shows(page, expression: str, value, what: str) -> None:
    """Waits until an expression in the page has the value."""
    def found():
        error = page.ask("document.getElementById('error').textContent")
        assert error == "", error
        return page.ask(expression) == value

    eventually(found, what=what)


def test_the_web_page_shows_items_live_and_changes_preferences(stack, proxy, page):
    user = proxy.user
    # The page is visible, so the user is present.
    eventually(lambda: sql(stack, f"SELECT count(*) FROM rules.presence WHERE user_id = '{user}'") == "1", what="presence")
    say(stack, user)
    shows(page, f"{ROWS}.length", 1, "the first item")
    shows(page, "document.getElementById('unread').textContent", "1", "the badge")
    assert "Dinner?" in page.ask(ROWS)[0][2]

    assert proxy.cut_streams() == 1
    say(stack, user)
    shows(page, f"{ROWS}.length", 2, "the item during the reconnect")
    assert proxy.last_event_ids()[-1] is not None

    page.ask("document.querySelector('#items li').click()")
    shows(page, f"{ROWS}.map((row) => row[1])", ["true", "false"], "one item read")
    page.ask("document.getElementById('read-all').click()")
    shows(page, "document.getElementById('unread').textContent", "0", "no unread item")

    shows(page, "document.querySelector('#types input[name=chat]')?.checked", True, "the types")
    page.ask("document.querySelector('#types input[name=chat]').click()")
    shows(page, "document.querySelector('#types input[name=chat]')?.checked", False, "the type is off")
    settings = eventually(
        lambda: sql(stack, f"SELECT settings FROM rules.person WHERE user_id = '{user}'"), what="the stored choice")
    assert json.loads(settings)["types"]["chat"] is False
    assert page.ask("window.neverReloaded") is True


def test_the_web_client_reads_events_at_every_border_of_parts(page):
    text = "retry: 3000\n\n: hello\r\n\r\nid: 1\rdata: a\rdata:b\r\revent: item\ndata\ndata:  é\nid:2\n\n"
    found = page.ask(f"""import("./heliograph.js").then(({{ EventStream }}) => [1, 2, 3, 7, 1000].map((size) => {{
        const text = {json.dumps(text)}, stream = new EventStream(), events = [];
        for (let at = 0; at < text.length; at += size) events.push(...stream.append(text.slice(at, at + size)));
        return [events, stream.lastId, stream.retry];
    }}))""")
    events = [{"name": "message", "data": "a\nb"}, {"name": "item", "data": "\n é"}]
    assert found == [[events, "2", 3000]] * 5


def test_the_web_client_closes_notifications_that_a_clear_command_names(page):
    closed = page.ask("""import("./heliograph.js").then(async ({ clearShown }) => {
        const closed = [];
        const shown = ["5b0c", "room/1", ""].map((tag) => ({ tag, close: () => closed.push(tag) }));
        const registration = { getNotifications: async () => shown };
        const answers = [];
        for (const data of [{ heliograph_clear: '["5b0c","other",7]' }, { heliograph_clear: "no JSON" }, { chat: "9" }, undefined])
            answers.push(await clearShown(registration, data));
        return [closed, answers];
    })""")
    assert closed == [["5b0c"], [True, False, False, False]]


def test_the_web_client_sends_a_test_push(page):
    push = page.ask("""import("./heliograph.js").then(async ({ Heliograph }) => new Heliograph({
        url: "/rules", events: "/events", bearer: async () => (await fetch("/token")).text() }).sendTestPush(30))""")
    # The user of the page has no device.
    assert push["complete"] is True and push["devices"] == [] and push["reason"] == "no-device", push


def test_the_web_client_repeats_transient_failures_and_reports_refusals(page, proxy):
    call = """import("./heliograph.js").then(({ Heliograph }) =>
        new Heliograph({ url: "/rules", bearer: async () => BEARER }).inbox()).then(
        (page) => page.items.length, (error) => [error.status, error.isTransient])"""
    proxy.refuse(1)
    assert page.ask(call.replace("BEARER", "(await fetch('/token')).text()")) == 0
    assert page.ask(call.replace("BEARER", "'forged'")) == [401, False]


def test_the_web_client_registers_its_browser_and_the_service_worker_shows_the_event(stack, proxy, page):
    # Chromium subscribes at Google's servers only, so the page gets a subscription of the simulated push service, and
    # DevTools delivers to Chromium what its browser decrypted.
    browser = Browser(stack)
    # The user of the page is present, and would get no push.
    user = f"web-{uuid.uuid4().hex[:8]}"
    asked = page.ask(f"""(async () => {{
        const {{ Heliograph }} = await import("./heliograph.js");
        const asked = [];
        const pushManager = {{
            subscribe: async (options) => {{
                asked.push(options.applicationServerKey);
                if (asked.length === 1) throw new DOMException("another key", "InvalidStateError");
                return {{ toJSON: () => ({json.dumps(browser.subscription)}) }};
            }},
            getSubscription: async () => ({{ unsubscribe: async () => asked.push("unsubscribe") }}),
        }};
        window.heliograph = new Heliograph({{
            url: "/rules", registry: "/registry", bearer: () => "{stack.bearer(APP, user)}" }});
        await window.heliograph.enablePush({{ pushManager }}, "KEY");
        return asked;
    }})()""")
    assert asked == ["KEY", "unsubscribe", "KEY"]
    event = say(stack, user)
    eventually(lambda: browser.messages() == [event], what="the event in the simulated browser")
    message = browser.requests()[0]["body"] | {"app_badge": 3}
    message["notification"]["actions"] = [{"action": "reply", "title": "Reply", "navigate": f"{proxy.url}/reply"}]

    page.call("Browser.grantPermissions", origin=proxy.url, permissions=["notifications"])
    page.ask("navigator.serviceWorker.register('/service-worker.js').then(() => 1)")
    # Chromium drops a push that arrives before.
    eventually(lambda: page.ask("navigator.serviceWorker.ready.then((ready) => ready.active.state)") == "activated",
               what="the active service worker")
    page.call("ServiceWorker.enable")
    registration = eventually(lambda: page.ask("1") and next((
        found["registrationId"] for seen in page.events if seen["method"] == "ServiceWorker.workerRegistrationUpdated"
        for found in seen["params"]["registrations"]), None), what="the service worker")
    shown = """navigator.serviceWorker.ready.then((registration) => registration.getNotifications()).then((notes) =>
        notes.map(({ title, body, tag, data, actions }) => ({ title, body, tag, data, actions: actions.map((a) => a.title) })))"""

    def deliver() -> list[dict]:
        page.call("ServiceWorker.deliverPushMessage", origin=proxy.url, registrationId=registration, data=json.dumps(message))
        # Chromium forgets a notification that it is asked for before it shows it.
        time.sleep(1)
        return page.ask(shown)

    # A repeat replaces the notification by its tag.
    (note,) = eventually(deliver, what="the notification")
    sent = message["notification"]
    assert (note["title"], note["body"], note["tag"]) == (sent["title"], sent["body"], sent["tag"])
    assert note["actions"] == ["Reply"] and note["data"]["message_id"] == event
    assert note["data"]["navigate"] == sent["navigate"] and note["data"]["links"] == {"reply": f"{proxy.url}/reply"}

    page.ask("window.heliograph.disablePush()")
    assert list(devices(stack, user).values()) == ["signed-out"]
    after = say(stack, user)
    eventually(lambda: "no-device" in explanation(stack, after), what="the outcome")
    assert browser.messages() == [event]
