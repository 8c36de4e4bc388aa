"""Publishes one event of family-portal over AMQP, and waits for the broker's confirm. Needs `pika`.

AMQP_URL   the broker, with an upstream's account, such as amqps://family-portal:…@broker/heliograph
"""

import datetime
import json
import os
import time
import uuid

import pika

APP = "family-portal"


def publish(event: dict, attempts: int = 5) -> None:
    """Returns once the broker has confirmed the event. The id makes a repetition harmless."""
    properties = pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2)
    for attempt in range(1, attempts + 1):
        try:
            connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
            try:
                channel = connection.channel()
                # basic_publish then waits for the confirm. It throws UnroutableError if no queue takes the event.
                channel.confirm_delivery()
                channel.basic_publish(
                    "events", f"{APP}.{event['type']}", json.dumps(event).encode(), properties, mandatory=True)
                return
            finally:
                if connection.is_open:
                    connection.close()
        except pika.exceptions.UnroutableError:
            raise SystemExit(f"no queue takes the events of {APP}: is the app configured, and the topology applied?")
        except (pika.exceptions.AMQPError, OSError) as error:
            if attempt == attempts:
                raise SystemExit(f"not confirmed: {error!r}")
            time.sleep(2 ** (attempt - 1))


event = {
    "specversion": "1.0",
    "id": str(uuid.uuid4()),
    "source": f"/{APP}/chat",
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
