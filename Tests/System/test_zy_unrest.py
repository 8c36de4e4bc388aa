"""Senders killed every five seconds, a GOAWAY every second, keys exchanged and revoked all the while: nothing is lost."""

import collections
import itertools
import json
import pathlib
import subprocess
import threading
import time
from dataclasses import dataclass

from crowd import Crowd, Outcomes, Simulator
from local_stack import eventually

SENDERS = ["apns-sender", "fcm-sender"]
BETWEEN_KILLS = 5
# Seconds after which a new key is in use: twice what a sender lets pass between two looks at its files.
TAKEN_UP = 10
# What a killed sender had in hand: at most so many messages of each of its queues, here of one target each.
PREFETCH = {"interactive": 500, "bulk": 64}
LIFETIME = 1800
# What a key gets that is not, or no longer, good.
REFUSALS = {"InvalidProviderToken", "invalid_grant"}


def test_nothing_is_lost_while_senders_die_and_connections_and_keys_change(stack):
    unrest(stack, seconds=30, dying=SENDERS, exchanges=2)


def test_nothing_is_lost_or_sent_twice_while_connections_and_keys_change_under_senders_that_live(stack):
    # One that is started again has read its files anew: only one that lives can show that it looks at them.
    unrest(stack, seconds=16, dying=[], exchanges=1)


def unrest(stack, seconds: int, dying: list[str], exchanges: int) -> None:
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
        calm, kills, revoked = threading.Event(), collections.Counter(), []
        threads = [threading.Thread(target=keep_killing, args=(stack, name, calm, kills)) for name in dying]
        threads.append(threading.Thread(target=keep_exchanging_keys, args=(stack, simulator, calm, revoked)))
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for crowd in crowds:
                crowd.notify(LIFETIME)
        disturbed = {one["name"]: one["times"] for one in simulator.ask("GET", "/disturbances")["disturbances"]}
        calm.set()
        for thread in threads:
            thread.join()
        simulator.calm()
        for name in dying:
            stack.service("ready", name)
        everyone = crowds[0].notifications | crowds[1].notifications
        await_outcomes(outcomes, everyone, simulator)
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
    assert all(kills[name] >= seconds / BETWEEN_KILLS - 3 for name in dying)
    assert {answer for answers in said.values() for answer in answers} == {"accepted"}
    assert summary["apns"]["messages"] == len(crowds[0].notifications)
    assert all(0 <= repeated[provider] <= bounds[provider] for provider in repeated)
    assert all(disturbed.values()), disturbed
    # Nobody was refused for an old key, though old ones were revoked and much was sent after that.
    assert len(revoked) >= exchanges
    for provider in ("apns", "fcm", "oauth"):
        assert not REFUSALS & summary[provider]["reasons"].keys(), summary[provider]["reasons"]
        assert summary[provider]["count"] > revoked[-1][provider]["count"], provider
    # An outcome that was published before the kill and not yet settled comes again with the push.
    assert sum(len(answers) - 1 for answers in said.values()) <= sum(bounds.values())


def await_outcomes(outcomes: Outcomes, everyone: set[str], simulator: Simulator) -> None:
    """Longer than the longest of the waits that a push may be put off for here (15 minutes)."""
    try:
        eventually(lambda: len(outcomes.of(everyone)) == len(everyone), 1000, f"an outcome for all of {len(everyone)}")
    except AssertionError as late:
        reasons = {provider: simulator.summary()[provider]["reasons"] for provider in ("apns", "fcm", "oauth")}
        missing = len(everyone) - len(outcomes.of(everyone))
        raise AssertionError(f"{late}; {missing} are missing; the providers said {reasons}") from None


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


def keep_exchanging_keys(stack, simulator: Simulator, calm: threading.Event, revoked: list[dict]) -> None:
    """The files that hold credentials become new files every second, as a mounted secret does.

    Every now and then they hold new keys, and a while after that the old ones are revoked: a sender that did not take the
    new ones up would be refused from then on.
    """
    folder = stack.state / "credentials"
    for second in itertools.count():
        if calm.wait(1):
            return
        match second % (TAKEN_UP + 2):
            case 0:
                fresh = new_credentials(folder, second)
                for key in fresh.public:
                    simulator.ask("POST", "/keys", key)
                for name, text in fresh.files.items():
                    replace(folder / name, text)
            case age if age == TAKEN_UP:
                for key in fresh.public:
                    simulator.ask("POST", "/keys", key | {"revokes_others": True})
                revoked.append(simulator.summary())
            case _:
                for name in ("apns.p8", "service-account.json"):
                    replace(folder / name, (folder / name).read_text())


@dataclass
class Credentials:
    """What the files shall hold, and what the simulator has to know about it."""

    files: dict[str, str]
    public: list[dict]


def new_credentials(folder: pathlib.Path, number: int) -> Credentials:
    ec = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    rsa = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
    account = json.loads((folder / "service-account.json").read_text())
    account |= {"private_key": rsa, "private_key_id": f"demo-key-of-second-{number}"}
    return Credentials(
        {"apns.p8": ec, "service-account.json": json.dumps(account)},
        [
            {"provider": "apns", "key_id": "DEMOKEY001", "public_key": openssl("pkey", "-pubout", text=ec)},
            {"provider": "fcm", "account": account["client_email"], "key_id": account["private_key_id"],
             "public_key": openssl("pkey", "-pubout", text=rsa)},
        ])


def openssl(*arguments: str, text: str = "") -> str:
    done = subprocess.run(["openssl", *arguments], input=text, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def replace(path: pathlib.Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.replace(path)
