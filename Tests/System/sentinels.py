"""Waits until everything published before is processed, so that a test can assert that no push follows."""

import subprocess
import uuid

from local_stack import cloud_event, eventually

# For each app, an event that pushes to one user and needs no other state.
EVENTS = {
    "baolife": ("achievement.unlocked", lambda user: {
        "player": {"id": user}, "achievement": {"id": "sentinel", "name": "Sentinel"}}),
    "family-portal": ("chat.message.created", lambda user: {
        "message": {"id": 1, "text": "Sentinel", "thread_id": None}, "sender": {"id": "sentinel", "name": "Sentinel"},
        "participants": [user]}),
    "monolite-hr": ("request.approved", lambda user: {
        "request": {"id": f"r-{user}", "kind": "vacation", "from": "2026-07-01", "until": "2026-07-14"},
        "worker": {"id": user}}),
    "tweet-chat": ("chat.message.sent", lambda user: {
        "chat": {"id": "sentinel"}, "message": {"id": "m", "content": "Sentinel"},
        "sender": {"id": "sentinel", "name": "Sentinel", "username": "sentinel"}, "members": [user]}),
    "hide-and-seek": ("game.started", lambda user: {
        "game": {"id": "sentinel"}, "players": [{"user": user, "role": "hider"}]}),
}

# Decided pushes without a provider outcome. Audiences have no outcomes of their own.
OPEN = """
    SELECT count(*) FROM rules.decision JOIN rules.event ON event.key = decision.event
    WHERE event.app = :'app' AND answer LIKE 'push%' AND reason NOT IN ('audience', 'broadcast')
        AND decided_at > now() - interval '3 minutes'
        AND NOT EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = decision.notification)
"""


def open_pushes(stack, app: str) -> int:
    done = subprocess.run(["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", f"app={app}"], input=OPEN,
                          capture_output=True, text=True, timeout=20, check=True)
    return int(done.stdout)


def all_is_handled(stack, app: str, provider: str = "apns") -> None:
    """Publishes one more event for a new phone and waits for its push. Then waits until every decided push of the app
    has an outcome. Earlier events have reached the provider by then.
    """
    user = f"sentinel-{uuid.uuid4().hex[:8]}"
    token = uuid.uuid4().hex * 2 if provider == "apns" else f"{user}:fcm"
    status, answer = stack.register(app, user, token, platform="ios" if provider == "apns" else "android")
    assert status == 200, answer
    type, data = EVENTS[app]
    stack.publish(f"{app}.{type}", cloud_event(type, data(user), user), content_type="application/cloudevents+json")
    eventually(lambda: [r for r in stack.requests(provider) if r.get("token") == token], 60, "the sentinel's push")
    eventually(lambda: open_pushes(stack, app) == 0, 60, f"an answer to every push of {app}")
