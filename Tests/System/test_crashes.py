"""SIGKILL of each of seven processes while a thousand events are processed: no push is missing, and few are repeated.
"""

import json

import pytest

from upstream import ChatEvents, publish_surely

EVENTS = 1000
VICTIMS = ["rules", "token-registry", "apns-sender", "fcm-sender", "feedback", "broker", "database"]
# The maximum repeats of one crash: the unacknowledged deliveries of the killed process, or of all processes for the
# broker.
PREFETCH = 300
STAGES_OF_A_PUSH = 3


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_thousand_events_survive_a_kill_of(stack, phones, victim):
    events = ChatEvents(stack, phones, EVENTS)

    def kill_and_start():
        stack.service("kill", victim)
        stack.service("start", victim)

    publish_surely(stack, events.bodies, kill_and_start)
    extra = events.await_all()
    bound = PREFETCH * STAGES_OF_A_PUSH if victim == "broker" else PREFETCH
    print(json.dumps({"victim": victim, "events": EVENTS, "duplicates": extra, "bound": bound}))
    assert extra <= bound
