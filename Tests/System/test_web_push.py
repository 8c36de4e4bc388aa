"""A browser's subscription, from its registration over HTTP to its end, at the simulated push service.

Two other implementations check the bytes: http_ece decrypts them and py_vapid verifies the token, and the simulator
accepts what pywebpush encrypts. Chromium's own `pushManager.subscribe` is not used: it needs Google's servers.
"""

import json
import time
import uuid

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from local_stack import eventually
from py_vapid import Vapid02
from test_phone_wall import notify
from test_revocations import explained, is_revoked
from test_token_deactivation import script, states, tell
from unsend import revoke
from web_push import Browser, declarative, decoded, encoded, send_with_pywebpush

# A retry waits 10 s and more, and a halted push service is probed after 30 s.
PATIENCE = 120


@pytest.fixture(autouse=True)
def empty_log(stack):
    stack.forget_requests()


def user() -> str:
    return f"web-{uuid.uuid4()}"


def arrives(browser: Browser, *messages: str, timeout: float = 30) -> None:
    eventually(lambda: browser.messages() == list(messages), timeout, "the messages in the browser")


def test_an_event_arrives_decrypted(stack):
    pat = user()
    browser = Browser(stack).register(pat)
    event = tell(stack, pat)
    arrives(browser, event)
    (request,) = browser.requests()
    assert request["body"]["web_push"] == 8030 and request["app"] == "family-portal"
    assert request["headers"]["content-encoding"] == "aes128gcm" and request["headers"]["urgency"] == "high"
    assert 0 < int(request["headers"]["ttl"]) <= 86_400
    # Padded to the common size, with the header of 86 bytes, the delimiter and the tag.
    assert len(decoded(request["encrypted"])) == 86 + 2820 + 1 + 16
    (note,) = browser.shown()
    assert (note["kind"], note["title"], note["link"]) == ("declarative", "New message", "https://family-portal.example/")
    eventually(lambda: "webpush" in explained(stack, event) and "accepted" in explained(stack, event), what="the outcome")


def test_a_later_message_of_a_topic_replaces_the_earlier(stack):
    pat = user()
    browser = Browser(stack).register(pat)
    for body, key in [("one", "ride"), ("two", None), ("three", "ride")]:
        notify(stack, pat, title="Ride", body=body, **({"collapseKey": key} if key else {}))
        eventually(lambda body=body: body in [note["body"] for note in browser.shown()], what="the notification")
    assert [(note["body"], note["replaced"]) for note in browser.shown()] == [("three", 1), ("two", 0)]
    topics = [request["headers"].get("topic") for request in browser.requests()]
    assert topics[0] == topics[2] != topics[1] is None and len(topics[0]) == 32


def test_http_ece_decrypts_the_bytes_and_py_vapid_verifies_the_token(stack):
    pat = user()
    browser = Browser(stack).register(pat)
    arrives(browser, tell(stack, pat))
    (request,) = browser.requests()
    key = ec.derive_private_key(int.from_bytes(decoded(browser.private_key), "big"), ec.SECP256R1())
    message = http_ece.decrypt(
        decoded(request["encrypted"]), private_key=key, auth_secret=decoded(browser.subscription["keys"]["auth"]))
    assert json.loads(message) == request["body"]
    scheme, _, parameters = request["headers"]["authorization"].partition(" ")
    named = dict(part.strip().split("=", 1) for part in parameters.split(","))
    signed, _, signature = named["t"].rpartition(".")
    public_key = Vapid02.from_raw_public(named["k"].encode())
    assert scheme == "vapid" and public_key.verify_token(signed.encode(), signature)
    assert not public_key.verify_token(signed.encode()[:-1] + b"0", signature)
    claims = json.loads(decoded(signed.partition(".")[2]))
    assert claims["aud"] == browser.origin and claims["sub"] == "mailto:heliograph@example.com"
    assert 0 < claims["exp"] - time.time() <= 86_400


def test_the_encryption_of_pywebpush_is_accepted(stack):
    browser = Browser(stack)
    assert send_with_pywebpush(stack, browser, declarative("Hi", body="Grüezi 👋"))[0] == 201
    assert send_with_pywebpush(stack, browser, b"a plain text")[0] == 201
    assert [(note["kind"], note["body"]) for note in browser.shown()] == [
        ("plain", "a plain text"), ("declarative", "Grüezi 👋")]
    # A token for another push service, and one that expired.
    for wrong in ({"aud": "https://push.example.com"}, {"exp": int(time.time()) - 1}):
        assert send_with_pywebpush(stack, browser, b"x", **wrong) == (403, '{"reason":"BadJwtToken"}')


def test_410_ends_the_registration_and_a_new_subscription_replaces_it(stack):
    pat = user()
    browser, other = Browser(stack).register(pat), Browser(stack, "127.0.0.1").register(pat)
    browser.end(410)
    first = tell(stack, pat)
    eventually(lambda: states(stack, pat) == ["active", "invalidated"], what="the end of one registration")
    arrives(other, first)
    again = Browser(stack)
    again.installation = browser.installation
    again.register(pat)
    second = tell(stack, pat)
    arrives(again, second)
    arrives(other, first, second)
    assert browser.statuses() == [410]


def test_404_ends_the_registration(stack):
    pat = user()
    browser = Browser(stack).register(pat)
    browser.end(404)
    tell(stack, pat)
    eventually(lambda: states(stack, pat) == ["invalidated"], what="the end of the registration")


def test_a_browser_that_registers_again_before_the_410_keeps_its_registration(stack):
    pat = user()
    browser = Browser(stack).register(pat)
    script(stack, provider="webpush", token=browser.token, status=410, delay_ms=3000, count=1)
    event = tell(stack, pat)
    eventually(lambda: browser.statuses() == [410], what="the request")
    browser.register(pat)
    eventually(lambda: "unregistered" in explained(stack, event), what="the outcome")
    eventually(lambda: stack.depth("feedback.outcomes") == 0 and stack.depth("token-registry.devices.app.family-portal") == 0)
    arrives(browser, tell(stack, pat))
    assert states(stack, pat) == ["active"]


def test_an_expired_subscription_ends(stack):
    pat = user()
    browser = Browser(stack, expires_in_ms=4000).register(pat)
    assert browser.subscription["expirationTime"] > time.time() * 1000
    before = tell(stack, pat)
    arrives(browser, before)
    time.sleep(max(0, browser.subscription["expirationTime"] / 1000 - time.time()) + 0.1)
    tell(stack, pat)
    # By the 410 of the push service, or by the sweep.
    eventually(lambda: states(stack, pat)[0] in ("invalidated", "stale"), what="the end of the registration")
    assert browser.messages() == [before]


def test_nothing_arrives_after_the_sign_out_or_for_the_former_user(stack):
    pat, kim = user(), user()
    browser = Browser(stack).register(pat)
    browser.sign_out(pat)
    event = tell(stack, pat)
    eventually(lambda: "no-device" in explained(stack, event), what="the outcome")
    browser.register(pat)
    browser.register(kim)
    event = tell(stack, pat)
    eventually(lambda: "no-device" in explained(stack, event), what="the outcome")
    own = tell(stack, kim)
    arrives(browser, own)


def test_a_subscription_for_another_key_is_rejected(stack):
    pat = user()
    key = Vapid02()
    key.generate_keys()
    numbers = key.public_key.public_numbers()
    point = b"\x04" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    stranger = Browser(stack, key=encoded(point)).register(pat)
    own = Browser(stack).register(pat)
    event = tell(stack, pat)
    arrives(own, event)
    eventually(lambda: "VapidPkHashMismatch" in explained(stack, event), what="the outcome")
    assert stranger.statuses() == [403]
    # The push service is not halted.
    again = tell(stack, pat)
    arrives(own, event, again)


# Even with HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS, which this stack sets for the simulator.
NEVER = [
    "https://169.254.169.254/latest/meta-data", "https://[fe80::1]/", "https://0.0.0.0/", "https://[::]/",
    "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://224.0.0.1/",
    "https://255.255.255.255/", "https://2130706433/", "https://127.1/", "https://0x7f000001/", "http://localhost/",
    "https://localhost:22/", "https://user@localhost/", "https://localhost%00.example/", "file:///etc/passwd",
]


@pytest.mark.parametrize("endpoint", NEVER)
def test_an_endpoint_that_is_never_a_push_service_is_refused(stack, endpoint):
    pat = user()
    browser = Browser(stack)
    status, answer = browser.put(pat, browser.subscription | {"endpoint": endpoint})
    assert status in (400, 422), answer
    assert states(stack, pat) == []


def test_429_pauses_its_push_service_only_and_a_revoked_push_does_not_arrive(stack):
    one, two, three, four = user(), user(), user(), user()
    busy, behind, revoked = (Browser(stack).register(name) for name in (one, two, three))
    elsewhere = Browser(stack, "127.0.0.1").register(four)
    script(stack, provider="webpush", token=busy.token, status=429, retry_after=10, count=1)
    first = tell(stack, one)
    eventually(lambda: busy.statuses() == [429], what="the refusal")
    waiting, taken_back = tell(stack, two), tell(stack, three)
    for _ in range(3):
        event = tell(stack, four)
        eventually(lambda event=event: event in elsewhere.messages(), 5, "the push at the other push service")
    assert behind.requests() == revoked.requests() == []
    revoke(stack, "--event", taken_back)
    arrives(behind, waiting, timeout=PATIENCE)
    arrives(busy, first, timeout=PATIENCE)
    eventually(lambda: is_revoked(stack, taken_back), PATIENCE, "the outcome of the revoked push")
    assert revoked.requests() == []


def test_403_halts_its_push_service_only(stack):
    one, two = user(), user()
    halted, elsewhere = Browser(stack).register(one), Browser(stack, "127.0.0.1").register(two)
    script(stack, provider="webpush", token=halted.token, status=403, count=1)
    first = tell(stack, one)
    # The sender signs a new token once, unless its token is young.
    eventually(lambda: 403 in halted.statuses(), what="the refusal")
    waiting = tell(stack, one)
    event = tell(stack, two)
    arrives(elsewhere, event, timeout=5)
    assert halted.messages() == []
    # The probe opens it.
    eventually(lambda: sorted(halted.messages()) == sorted([first, waiting]), PATIENCE, "the pushes that waited")
