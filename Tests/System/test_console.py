"""The console in a real browser, in front of a real stack: each screen, each action, by keyboard, and without rights."""

import importlib.resources
import json
import time
import uuid

import pika
import pytest

from browser import chromium
from local_stack import eventually, sql
from upstream import TYPE, chat_event

APP = "family-portal"
# The rules of axe for WCAG 2.1, levels A and AA.
AXE = """axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }).then((result) =>
  result.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.html).join(" ")))"""


@pytest.fixture(scope="module")
def page(stack, tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("console")) as page:
        yield page


@pytest.fixture(scope="module")
def pushed(stack):
    """An event that one user was told of: their id, the event's id."""
    user, event, token = f"console-{uuid.uuid4()}", f"e-{uuid.uuid4()}", uuid.uuid4().hex * 2
    assert stack.register(APP, user, token)[0] == 200
    with stack.channel() as channel:
        channel.basic_publish(
            "events", f"{APP}.{TYPE}", chat_event(user, event),
            pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2), mandatory=True)
    eventually(lambda: any(one["token"] == token for one in stack.requests("apns")), 30, "the push")
    return user, event


def at(page, path: str) -> None:
    """Waits until the browser shows a complete page at this path, which may be the beginning of another one."""
    def arrived():
        shown = page.ask("document.readyState === 'complete' && location.pathname + location.search") or ""
        return shown == path or path != "/" and shown.startswith(path)

    eventually(arrived, 20, f"the page {path}")


def text(page) -> str:
    return page.ask("document.querySelector('main')?.innerText ?? ''")


def go(stack, page, path: str) -> None:
    page.go(stack.env["CONSOLE_URL"] + path)
    at(page, path)


def sign_in(stack, page, role: str, name: str = "Kim") -> None:
    page.call("Network.clearBrowserCookies")
    go(stack, page, "/sign-in")
    page.ask(f"document.querySelector('[name=name]').value = {json.dumps(name)}")
    page.ask(f"document.querySelector('[name=role]').value = {json.dumps(role)}")
    page.ask("document.querySelector('main form').requestSubmit()")
    at(page, "/rules" if role == "look" else "/")


def accessible(page) -> list[str]:
    page.ask(importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text() + "; true")
    return page.ask(AXE)


def key(page, name: str, code: int, characters: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                  **({"text": characters} if characters and kind == "keyDown" else {}))


def test_an_event_and_its_person_are_explained(stack, page, pushed):
    user, event = pushed
    sign_in(stack, page, "support")
    page.ask(f"document.querySelector('[action=\"/event\"] [name=id]').value = {json.dumps(event)}")
    page.ask(f"document.querySelector('[action=\"/event\"] [name=app]').value = '{APP}'")
    page.ask("document.querySelector('[action=\"/event\"]').requestSubmit()")
    at(page, "/event?")
    eventually(lambda: page.ask("location.reload(); true") and "accepted" in text(page), 20, "the outcome")
    assert user in text(page) and "decided: push" in text(page)
    assert page.ask("document.querySelector('[action=\"/event/revoke\"]')") is None
    page.ask("document.querySelector('article h2 a').click()")
    at(page, "/person?")
    shown = text(page)
    assert "chat-message" in shown and "accepted" in shown and "active" in shown and event in shown


def test_an_operator_revokes_and_the_audit_log_tells_it(stack, page, pushed):
    _, event = pushed
    sign_in(stack, page, "operate", "Robin")
    go(stack, page, f"/event?app={APP}&id={event}")
    page.ask("document.querySelector('[action=\"/event/revoke\"] [name=reason]').value = 'wrong <b>text</b>'")
    page.ask("document.querySelector('[action=\"/event/revoke\"]').requestSubmit()")
    eventually(lambda: "wrong <b>text</b> (Robin)" in text(page), 20, "the revocation on the page")
    go(stack, page, "/audit")
    rows = page.ask("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    assert any("Robin" in row and "revoked" in row and event in row and "done" in row for row in rows), rows


def test_an_operator_deactivates_a_device(stack, page, pushed):
    user, _ = pushed
    sign_in(stack, page, "operate")
    go(stack, page, f"/person?app={APP}&user={user}")
    page.ask("document.querySelector('[action=\"/device/deactivate\"]').requestSubmit()")
    eventually(lambda: "Deactivate" not in (text(page) or "Deactivate"), 20, "the device without the action")
    assert "active" not in page.ask(
        "[...document.querySelectorAll('section')].find((one) => one.innerText.startsWith('Devices')).querySelector('.word').innerText"
    ).split()


def test_a_support_link_works_without_a_session(stack, page, pushed):
    user, event = pushed
    sign_in(stack, page, "support")
    go(stack, page, f"/event?app={APP}&id={event}")
    page.ask("document.querySelector('[action=\"/event/link\"]').requestSubmit()")
    eventually(lambda: page.ask("document.querySelector('main a')?.href ?? ''").find("/shared/") > 0, 20, "the link")
    link = page.ask("document.querySelector('main a').href")
    page.call("Network.clearBrowserCookies")
    page.go(link)
    eventually(lambda: "decided: push" in text(page), 20, "the shared page")
    assert user not in page.ask("document.body.innerText")


@pytest.mark.parametrize("path", ["/", "/rules", "/live", "/audit"])
def test_each_screen_is_accessible_in_light_and_dark(stack, page, pushed, path):
    user, event = pushed
    sign_in(stack, page, "operate")
    paths = [path] if path != "/" else ["/", f"/event?app={APP}&id={event}", f"/person?app={APP}&user={user}"]
    for one in paths:
        for scheme in ("light", "dark"):
            page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            go(stack, page, one)
            assert accessible(page) == [], f"{one}, {scheme}"


def test_a_person_is_found_by_keyboard_alone(stack, page, pushed):
    user, _ = pushed
    sign_in(stack, page, "support")
    # The first Tab reaches the link that skips the navigation.
    key(page, "Tab", 9)
    assert page.ask("document.activeElement.className") == "skip"
    for _ in range(30):
        if page.ask("document.activeElement.name") == "user":
            break
        key(page, "Tab", 9)
    page.call("Input.insertText", text=user)
    key(page, "Enter", 13, "\r")
    at(page, "/person?")
    assert user in page.ask("document.title")


def test_a_narrow_screen_scrolls_in_its_tables_only(stack, page, pushed):
    user, _ = pushed
    sign_in(stack, page, "operate")
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    try:
        go(stack, page, f"/person?app={APP}&user={user}")
        assert page.ask("document.documentElement.scrollWidth") <= 360
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_look_reads_no_person(stack, page, pushed):
    user, _ = pushed
    sign_in(stack, page, "look")
    assert page.ask("[...document.querySelectorAll('nav a')].map((one) => one.innerText)") == ["Rules", "Live"]
    go(stack, page, f"/person?app={APP}&user={user}")
    assert "role “support”" in text(page) and user not in text(page)


def test_the_live_page_shows_a_service_that_ends(stack, page):
    sign_in(stack, page, "look")
    go(stack, page, "/live")
    assert "rules" in text(page)
    stack.service("stop", "feedback")
    try:
        go(stack, page, "/live")
        row = "[...document.querySelectorAll('tbody tr')].find((one) => one.innerText.startsWith('feedback')).innerText"
        assert "away" in page.ask(row)
    finally:
        stack.service("start", "feedback")
        stack.service("ready", "feedback")
    go(stack, page, "/live")
    assert "away" not in page.ask(row)


def test_a_person_with_many_notifications_is_shown_at_once(stack, page):
    """200 of 10,000 notifications: the limit of the API."""
    user = f"many-{uuid.uuid4()}"
    sql(stack, f"""
        INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
        SELECT gen_random_uuid(), '{APP}', '/many', '{user}-' || n, 'chat.message.created', gen_random_uuid(), now()
        FROM generate_series(1, 10000) AS n;
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
        SELECT gen_random_uuid(), 0, key, 'chat-message', '{user}', now(), 'inbox', 'capped'
        FROM rules.event WHERE id LIKE '{user}-%'""")
    sign_in(stack, page, "support")
    begun = time.monotonic()
    go(stack, page, f"/person?app={APP}&user={user}")
    assert page.ask("document.querySelectorAll('tbody tr').length") >= 50
    assert time.monotonic() - begun < 10
