"""Publishes one event of family-portal over HTTP, with the standard library only.

EVENTS_API_URL   the address of events-api
EVENTS_API_KEY   an API key for `events:publish`, bound to the app
"""

import datetime
import json
import os
import random
import time
import urllib.error
import urllib.request
import uuid


def publish(event: dict, attempts: int = 5) -> None:
    """Returns once the event is accepted. The id makes a repetition harmless."""
    request = urllib.request.Request(
        os.environ["EVENTS_API_URL"].rstrip("/") + "/v1/events",
        data=json.dumps(event).encode(),
        headers={"Content-Type": "application/cloudevents+json", "Authorization": "Bearer " + os.environ["EVENTS_API_KEY"]},
    )
    for attempt in range(1, attempts + 1):
        pause = 2 ** (attempt - 1) * random.uniform(0.5, 1)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 202, answer.status
                return
        except urllib.error.HTTPError as refusal:
            detail = refusal.read().decode(errors="replace")
            if refusal.code != 429 and refusal.code < 500 or attempt == attempts:
                raise SystemExit(f"status {refusal.code}: {detail}")
            pause += float(refusal.headers.get("Retry-After") or 0)
        except OSError as error:
            if attempt == attempts:
                raise SystemExit(f"no answer: {error}")
        time.sleep(pause)


event = {
    "specversion": "1.0",
    "id": str(uuid.uuid4()),
    "source": "/family-portal/chat",
    "type": "chat.message.created",
    "time": datetime.datetime.now(datetime.timezone.utc).isoformat(),
    "data": {
        "message": {"id": 123, "text": "Dinner is at seven.", "thread_id": None},
        "sender": {"id": 456, "name": "Pat"},
        "participants": [456, 457, 458],
    },
}
publish(event)
print("accepted", event["id"])
