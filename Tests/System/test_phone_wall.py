"""The phone wall in a real browser: publishes notifications and checks the page."""

import json
import time
import uuid

import pika
import pytest

from browser import chromium
from local_stack import eventually
from web_push import Browser, declarative, send_with_pywebpush

SHOWN = """[...document.querySelectorAll(".phone")].map((phone) => ({
  token: phone.dataset.token, platform: phone.dataset.platform,
  title: phone.querySelector(".caption h2").textContent, counts: phone.querySelector(".counts").textContent,
  badge: phone.querySelector(".badge")?.textContent ?? null,
  notes: [...phone.querySelectorAll(".note")].map((note) => ({
    title: note.querySelector("h3").textContent, body: note.querySelector(".body").textContent,
    silent: note.dataset.silent, kind: note.dataset.kind,
    chips: [...note.querySelectorAll(".chip")].map((chip) => chip.textContent),
    actions: [...note.querySelectorAll(".actions span")].map((action) => action.textContent),
  })),
}))"""


@pytest.fixture(scope="module")
def page(stack, tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("browser")) as page:
        page.go(stack.env["SIMULATOR_URL"] + "/")
        eventually(lambda: page.ask("document.getElementById('live')?.dataset.state") == "live", what="the wall is live")
        # Lost by a reload, so content that appears while it is set arrived live.
        page.ask("window.neverReloaded = true")
        yield page


def shown(page, token: str):
    return next((phone for phone in page.ask(SHOWN) if phone["token"] == token), None)


def notes(page, token: str) -> list[dict]:
    phone = shown(page, token)
    return phone["notes"] if phone else []


def notify(stack, user: str, **content) -> None:
    """Publishes a notification of family-portal, like rules."""
    notification = str(uuid.uuid4())
    message = {
        "type": "heliograph.notification", "version": 1, "app": "family-portal", "rule": "wall", "lane": "interactive",
        "trace": {"id": str(uuid.uuid4()), "correlation": notification, "causation": notification},
        "content": {"silent": False} | content, "expiresAt": int((time.time() + 3600) * 1000),
        "recipients": [{"user": user, "notification": notification}],
    }
    with stack.channel() as channel:
        channel.basic_publish(
            "notifications", "interactive.family-portal", json.dumps(message).encode(),
            pika.BasicProperties(content_type="application/json", delivery_mode=2), mandatory=True)


@pytest.fixture
def iphone(phones):
    token = uuid.uuid4().hex * 2
    phones("family-portal", token, token)
    return token


def test_a_push_appears_without_a_reload_and_its_markup_is_escaped(stack, page, iphone):
    text = "<script>window.broken = true</script> & <img src=x onerror='window.broken = true'>"
    notify(stack, iphone, title="<b>Bold</b>", body=text, badge=7, sound="default")
    (note,) = eventually(lambda: notes(page, iphone), what="the notification is on the wall")
    assert (note["title"], note["body"], note["silent"]) == ("<b>Bold</b>", text, "false")
    assert {"sound", "badge 7"} <= set(note["chips"])
    phone = shown(page, iphone)
    assert (phone["platform"], phone["badge"], phone["counts"]) == ("ios", "7", "1 delivered")
    assert page.ask("window.broken === undefined && document.querySelectorAll('.note script, .note b').length === 0")
    assert page.ask("window.neverReloaded") is True


def test_the_newest_is_on_top_and_a_collapse_key_replaces(stack, page, iphone):
    for body, key in [("one", None), ("two", "ride"), ("three", None), ("four", "ride")]:
        notify(stack, iphone, title="Ride", body=body, **({"collapseKey": key} if key else {}))
        eventually(lambda: body in [note["body"] for note in notes(page, iphone)], what=f"{body} arrived")
    assert [note["body"] for note in notes(page, iphone)] == ["four", "three", "one"]
    assert "replaced 1" in notes(page, iphone)[0]["chips"]


def test_a_silent_push_is_marked_and_has_no_text(stack, page, iphone):
    notify(stack, iphone, silent=True, data={"sync": "inbox"})
    (note,) = eventually(lambda: notes(page, iphone), what="the silent push is on the wall")
    assert (note["silent"], note["kind"], note["title"]) == ("true", "background", "")


def test_an_fcm_token_is_shown_as_an_android_phone(stack, page, phones):
    token = f"wall-{uuid.uuid4().hex}:APA91b"
    phones("family-portal", token, token, platform="android")
    notify(stack, token, title="New message", body="Pat: Dinner is at seven.")
    (note,) = eventually(lambda: notes(page, token), what="the message is on the wall")
    assert (shown(page, token)["platform"], note["title"]) == ("android", "New message")


def test_a_browser_shows_declarative_and_plain_messages(stack, page):
    browser = Browser(stack)
    reply = [{"action": "reply", "title": "Reply", "navigate": "https://family-portal.example/reply"}]
    for message in [
        declarative("Ride", body="one", tag="ride"), declarative("<b>News</b>", body="two", actions=reply, badge=4),
        declarative("Ride", body="three", tag="ride"), b"plain words",
    ]:
        assert send_with_pywebpush(stack, browser, message)[0] == 201
    found = eventually(lambda: (found := notes(page, browser.token)) and len(found) == 3 and found, what="the messages")
    assert [note["body"] for note in found] == ["plain words", "three", "two"]
    assert [note["kind"] for note in found] == ["plain", "declarative", "declarative"]
    assert "Plain push" in found[0]["chips"] and "replaced 1" in found[1]["chips"]
    assert found[2]["actions"] == ["Reply"] and found[2]["title"] == "<b>News</b>"
    phone = shown(page, browser.token)
    assert (phone["platform"], phone["title"], phone["badge"]) == ("browser", "Family Portal", "4")
    address = f'[data-token="{browser.token}"] .island'
    assert page.ask(f"document.querySelector({json.dumps(address)}).textContent") == "family-portal.example"

    page.ask("document.querySelector('[data-only=browser]').click()")
    page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert {phone["platform"] for phone in page.ask(SHOWN)} == {"browser"}
    page.ask("document.querySelector('[data-only=\"\"]').click()")


def test_a_rejected_push_is_counted_and_not_shown(stack, page, iphone):
    outcome = {"provider": "apns", "token": iphone, "reason": "PayloadTooLarge", "count": 1}
    status, answer = stack.http("POST", f"{stack.env['SIMULATOR_URL']}/outcomes", outcome)
    assert status == 200, answer
    notify(stack, iphone, title="Never", body="seen")
    phone = eventually(lambda: shown(page, iphone), what="the phone is on the wall")
    assert (phone["notes"], phone["counts"]) == ([], "0 delivered · 1 not")


def test_the_search_filters_phones(stack, page, iphone):
    notify(stack, iphone, title="Needle", body="in a haystack")
    eventually(lambda: notes(page, iphone), what="the notification is on the wall")

    def search(text: str) -> list[str]:
        page.ask(f"(() => {{ const box = document.getElementById('search'); box.value = {json.dumps(text)}; "
                 "box.dispatchEvent(new Event('input')); })()")
        page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return [phone["token"] for phone in page.ask(SHOWN)]

    assert search("needle haystack") == [iphone]
    assert search(iphone[:20]) == [iphone]
    assert search("nothing like it") == []
    assert iphone in search("")


def test_an_inline_image_is_shown_and_a_remote_one_is_a_placeholder(stack, page, iphone):
    # One red pixel.
    point = ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIA"
             "X8jx0gAAAABJRU5ErkJggg==")
    notify(stack, iphone, title="Inside", body="a point", image=point)
    notify(stack, iphone, title="Elsewhere", body="a lake", image="https://images.invalid/lake.jpg")
    eventually(lambda: len(notes(page, iphone)) == 2, what="both are on the wall")
    pictures = f"""[...document.querySelectorAll('.phone[data-token="{iphone}"] .note')].map((note) => {{
      const figure = note.querySelector('figure');
      const image = figure.querySelector('img');
      return [note.querySelector('h3').textContent, figure.hidden, image?.complete && image.naturalWidth, figure.textContent.trim()];
    }})"""
    eventually(lambda: page.ask(pictures)[1][2] == 1, what="the picture is drawn")
    (elsewhere, inside) = page.ask(pictures)
    assert inside == ["Inside", False, 1, ""]
    assert (elsewhere[0], elsewhere[1]) == ("Elsewhere", False) and "images.invalid" in elsewhere[3]


def test_the_page_makes_no_other_requests_and_logs_no_errors(stack, page, iphone):
    notify(stack, iphone, title="Picture", body="of a lake", image="https://images.invalid/lake.jpg")
    eventually(lambda: notes(page, iphone), what="the notification is on the wall")
    assert page.ask("document.querySelectorAll('.note img').length") == 0, "remote images are not fetched by default"
    loaded = page.ask("performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin)")
    assert set(loaded) == {stack.env["SIMULATOR_URL"]}
    complaints = [event for event in page.events if event.get("method") == "Log.entryAdded"]
    assert complaints == []


def test_deleting_requests_empties_the_wall(stack, page, iphone):
    notify(stack, iphone, title="Soon", body="gone")
    eventually(lambda: notes(page, iphone), what="the notification is on the wall")
    stack.forget_requests()
    eventually(lambda: page.ask("!document.getElementById('empty').hidden && !document.querySelector('.phone')"),
               what="the wall is empty")
