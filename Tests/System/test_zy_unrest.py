"""Senders killed every five seconds, a GOAWAY every second, credentials replaced all the while: nothing is lost."""

import collections
import json
import os
import shutil
import threading
import time

from crowd import Crowd, Outcomes, Simulator
from local_stack import eventually

SENDERS = ["apns-sender", "fcm-sender"]
SECONDS = 30
BETWEEN_KILLS = 5
# What a killed sender had in hand: at most so many messages of each of its queues, here of one target each.
PREFETCH = {"interactive": 500, "bulk": 64}
LIFETIME = 1800


def test_nothing_is_lost_while_senders_die_and_connections_and_credentials_change(stack):
    crowds = [Crowd(stack, "apns", 400), Crowd(stack, "fcm", 200)]
    for crowd in crowds:
        crowd.register()
    simulator = Simulator(stack)
    simulator.calm()
    simulator.ask("DELETE", "/requests")
    simulator.ask("POST", "/disturbances", [
        {"goaway": {"last_stream": "graceful", "reason": "Shutdown"}, "every_ms": 1000},
        {"revoke_access_tokens": True, "every_ms": 3000},
    ])
    # Each sender has pushes in hand whenever it dies.
    simulator.ask("POST", "/outcomes", [
        {"provider": provider, "status": 200, "share": 1, "delay_ms": {"uniform": [5, 50]}} for provider in ("apns", "fcm")
    ])
    with Outcomes(stack.env["AMQP_URL"]) as outcomes:
        calm, kills = threading.Event(), collections.Counter()
        unrest = [threading.Thread(target=keep_killing, args=(stack, name, calm, kills)) for name in SENDERS]
        unrest.append(threading.Thread(target=keep_replacing_keys, args=(stack, calm)))
        for thread in unrest:
            thread.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for crowd in crowds:
                crowd.notify(LIFETIME)
        disturbed = {one["name"]: one["times"] for one in simulator.ask("GET", "/disturbances")["disturbances"]}
        calm.set()
        for thread in unrest:
            thread.join()
        simulator.calm()
        for name in SENDERS:
            stack.service("ready", name)
        everyone = crowds[0].notifications | crowds[1].notifications
        eventually(lambda: len(outcomes.of(everyone)) == len(everyone), 240, f"an outcome for all of {len(everyone)}")
        said = outcomes.of(everyone)
    summary = simulator.summary()
    # What was taken beyond one for each push: FCM's bodies differ by the time that is left, so their number tells nothing.
    repeated = {
        provider: summary[provider]["delivered"] - len(crowd.notifications)
        for provider, crowd in zip(("apns", "fcm"), crowds)
    }
    apps = {"apns": len(crowds[0].apps), "fcm": 1}
    bounds = {provider: kills[f"{provider}-sender"] * sum(PREFETCH.values()) * apps[provider] for provider in apps}
    print(json.dumps({
        "pushes": len(everyone), "kills": dict(kills), "duplicates": repeated, "bounds": bounds,
        "outcomes_repeated": sum(len(answers) - 1 for answers in said.values()), "disturbances": disturbed}))
    assert all(kills[name] >= SECONDS / BETWEEN_KILLS - 3 for name in SENDERS)
    assert {answer for answers in said.values() for answer in answers} == {"accepted"}
    assert summary["apns"]["messages"] == len(crowds[0].notifications)
    assert all(0 <= repeated[provider] <= bounds[provider] for provider in repeated)
    assert all(disturbed.values()), disturbed
    # An outcome that was published before the kill and not yet settled comes again with the push.
    assert sum(len(answers) - 1 for answers in said.values()) <= sum(bounds.values())


def keep_killing(stack, name: str, calm: threading.Event, kills: collections.Counter) -> None:
    while not calm.wait(BETWEEN_KILLS):
        stack.service("kill", name)
        kills[name] += 1
        start(stack, name)


def start(stack, name: str) -> None:
    # One script at a time may start what a stack consists of.
    for _ in range(50):
        try:
            stack.service("start", name)
            return
        except RuntimeError as busy:
            if "at work" not in str(busy):
                raise
            time.sleep(0.1)
    raise AssertionError(f"{name} could not be started again")


def keep_replacing_keys(stack, calm: threading.Event) -> None:
    """The files that hold credentials become new files every second, as a mounted secret does."""
    folder = stack.state / "credentials"
    while not calm.wait(1):
        for name in ("apns.p8", "service-account.json"):
            fresh = folder / f"{name}.new"
            shutil.copy2(folder / name, fresh)
            os.utime(fresh)
            os.replace(fresh, folder / name)
