"""The demo: deploy/local/up publishes two events; checks the pushes on the phones. Payloads are those of the product
documents.
"""

from local_stack import SERVICES

CHAT = {
    "aps": {
        "alert": {"title": "New message", "body": "Pat: Dinner is at seven."},
        "sound": "default",
        "badge": 1,
        "category": "chat_message",
    },
    "data": {
        "type": "chat_message",
        "message_id": 123,
        "sender_id": 456,
        "sender_name": "Pat",
        "thread_id": None,
    },
}

RADAR = {
    "aps": {
        "alert": {
            "title": "Hide & Seek",
            "body": "A 3 km radar question has been asked. Your answer timer is running.",
        },
        "sound": "default",
        "content-available": 1,
        "interruption-level": "time-sensitive",
    },
    "data": {
        "event_type": "question_asked",
        "game_id": "6c0a7c1e-95f1-4c2b-8a4e-0f6d2b1f9a11",
        "question_id": "q-1",
        "question_type": "radar",
        "question_status": "answerable",
        "parameters": {"radius_m": 3000},
    },
}


def test_the_demo_reaches_the_phones_byte_for_byte(stack):
    # All requests until each notification had its outcome, so a duplicate would be here.
    received = sorted(
        ((request["headers"]["apns-topic"], request["body"]) for request in stack.demo["apns"]), key=lambda pair: pair[0])
    assert received == [("com.example.hideandseek", RADAR), ("com.familyportal.app", CHAT)]
    (chat,) = (request for request in stack.demo["apns"] if request["headers"]["apns-topic"] == "com.familyportal.app")
    day = int(chat["headers"]["apns-expiration"]) - chat["receivedAt"] / 1000
    assert 86_400 - 120 < day <= 86_400, "a chat message is worth a day"
    for request in stack.demo["apns"]:
        assert request["status"] == 200
        assert request["headers"]["apns-push-type"] == "alert"
        assert request["headers"]["apns-priority"] == "10"
        assert request["path"] == f"/3/device/{request['token']}"
        assert request["headers"]["apns-id"] == request["headers"]["apns-id"].lower()
        assert len(request["headers"]["apns-collapse-id"]) == 36


def test_the_demo_reaches_the_android_phone(stack):
    (request,) = stack.demo["fcm"]
    message = request["body"]["message"]
    assert request["status"] == 200
    assert message["notification"] == {"title": "New message", "body": "Pat: Dinner is at seven."}
    assert message["data"]["message_id"] == "123"


def test_the_demo_reaches_the_browser(stack):
    (request,) = stack.demo["webpush"]
    assert (request["status"], request["app"]) == (201, "family-portal")
    notification = request["body"]["notification"]
    assert (notification["title"], notification["body"]) == ("New message", "Pat: Dinner is at seven.")
    assert request["body"]["web_push"] == 8030


def test_the_output_shows_the_pushes_and_the_addresses(stack):
    assert "New message: Pat: Dinner is at seven." in stack.output
    assert "radar question has been asked" in stack.output
    for place in ("phones", "request log", "registry", "logs", "join in"):
        assert place in stack.output


def test_every_service_is_ready_and_has_metrics(stack):
    for service in SERVICES:
        stack.service("ready", service)
    status, metrics = stack.http("GET", f"http://127.0.0.1:{stack.admin_port('rules')}/metrics")
    assert status == 200 and "heliograph_" in metrics


def test_a_second_up_restarts_nothing(stack):
    pids = {service: stack.service("pid", service) for service in SERVICES + ["broker", "database"]}
    stack.up("--no-demo", timeout=60)
    assert pids == {service: stack.service("pid", service) for service in SERVICES + ["broker", "database"]}
