"""Senders killed every five seconds, a GOAWAY every second, and rotated keys: no push is lost."""

import collections
import itertools
import json
import pathlib
import subprocess
import threading
import time
from dataclasses import dataclass

from simulated_users import SimulatedUsers, Outcomes, Simulator
from local_stack import eventually

SENDERS = ["apns-sender", "fcm-sender"]
BETWEEN_KILLS = 5
# Seconds until a new key is in use: twice the reload interval of the senders.
RELOAD_TIME = 10
# The maximum unacknowledged messages of a killed sender, by lane, with one target each.
PREFETCH = {"interactive": 500, "bulk": 64}
LIFETIME = 1800
# The reasons for invalid and revoked keys.
REFUSALS = {"InvalidProviderToken", "invalid_grant"}


def test_no_push_is_lost_while_senders_are_killed_and_keys_rotate(stack):
    run_with_restarts(stack, seconds=30, killed=SENDERS, rotations=2)


def test_no_push_is_lost_or_repeated_while_keys_rotate_under_running_senders(stack):
    # A restarted sender reads its files anyway, so only a running one shows that it reloads them.
    run_with_restarts(stack, seconds=16, killed=[], rotations=1)


def run_with_restarts(stack, seconds: int, killed: list[str], rotations: int) -> None:
    groups = [SimulatedUsers(stack, "apns", 400), SimulatedUsers(stack, "fcm", 200)]
    for group in groups:
        group.register()
    simulator = Simulator(stack)
    simulator.clear_faults()
    simulator.ask("DELETE", "/requests")
    simulator.ask("POST", "/disturbances", [
        {"goaway": {"last_stream": "graceful", "reason": "Shutdown"}, "every_ms": 1000},
        {"revoke_access_tokens": True, "every_ms": 3000},
    ])
    # Slow responses, so that each sender has pushes in flight when it is killed.
    simulator.ask("POST", "/outcomes", [
        {"provider": provider, "status": 200, "share": 1, "delay_ms": {"uniform": [5, 50]}} for provider in ("apns", "fcm")
    ])
    with Outcomes(stack.env["AMQP_URL"]) as outcomes:
        stop, kills, revoked = threading.Event(), collections.Counter(), []
        threads = [threading.Thread(target=kill_repeatedly, args=(stack, name, stop, kills)) for name in killed]
        threads.append(threading.Thread(target=rotate_keys_repeatedly, args=(stack, simulator, stop, revoked)))
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end or not has_new_keys(simulator, revoked, rotations):
            assert time.monotonic() < end + 60, "no requests after the old keys were revoked"
            for group in groups:
                group.notify(LIFETIME)
        disturbed = {one["name"]: one["times"] for one in simulator.ask("GET", "/disturbances")["disturbances"]}
        stop.set()
        for thread in threads:
            thread.join()
        simulator.clear_faults()
        for name in killed:
            stack.service("ready", name)
        everyone = groups[0].notifications | groups[1].notifications
        await_outcomes(outcomes, everyone, simulator)
        found = outcomes.of(everyone)
    summary = simulator.summary()
    # Deliveries beyond one per push. FCM bodies contain the remaining TTL, so `duplicates` does not count them.
    repeated = {
        provider: summary[provider]["delivered"] - len(group.notifications)
        for provider, group in zip(("apns", "fcm"), groups)
    }
    apps = {"apns": len(groups[0].apps), "fcm": 1}
    bounds = {provider: kills[f"{provider}-sender"] * sum(PREFETCH.values()) * apps[provider] for provider in apps}
    print(json.dumps({
        "pushes": len(everyone), "kills": dict(kills), "duplicates": repeated, "bounds": bounds,
        "outcomes_repeated": sum(len(answers) - 1 for answers in found.values()), "disturbances": disturbed}))
    assert all(kills[name] >= seconds / BETWEEN_KILLS - 3 for name in killed)
    assert {answer for answers in found.values() for answer in answers} == {"accepted"}
    assert summary["apns"]["messages"] == len(groups[0].notifications)
    assert all(0 <= repeated[provider] <= bounds[provider] for provider in repeated)
    assert all(disturbed.values()), disturbed
    # No request failed with an old key, although old keys were revoked while pushes continued.
    for provider in ("apns", "fcm", "oauth"):
        assert not REFUSALS & summary[provider]["reasons"].keys(), summary[provider]["reasons"]
        assert summary[provider]["count"] > revoked[rotations - 1][provider]["count"], provider
    # An outcome published before the kill and not yet acknowledged is repeated with the push.
    assert sum(len(answers) - 1 for answers in found.values()) <= sum(bounds.values())


def has_new_keys(simulator: Simulator, revoked: list[dict], rotations: int) -> bool:
    """Whether each provider has had requests since the keys were revoked this many times. On a busy machine, an access
    token is fetched seconds later.
    """
    if len(revoked) < rotations:
        return False
    summary = simulator.summary()
    return all(summary[provider]["count"] > revoked[rotations - 1][provider]["count"] for provider in ("apns", "fcm", "oauth"))


def await_outcomes(outcomes: Outcomes, everyone: set[str], simulator: Simulator) -> None:
    """Waits longer than the longest retry delay (15 minutes)."""
    try:
        eventually(lambda: len(outcomes.of(everyone)) == len(everyone), 1000, f"an outcome for all {len(everyone)} pushes")
    except AssertionError as late:
        reasons = {provider: simulator.summary()[provider]["reasons"] for provider in ("apns", "fcm", "oauth")}
        missing = len(everyone) - len(outcomes.of(everyone))
        raise AssertionError(f"{late}; {missing} are missing; reasons of the providers: {reasons}") from None


def kill_repeatedly(stack, name: str, stop: threading.Event, kills: collections.Counter) -> None:
    while not stop.wait(BETWEEN_KILLS):
        stack.service("kill", name)
        kills[name] += 1
        start(stack, name)


def start(stack, name: str) -> None:
    # Only one script at a time may start processes of a stack.
    for _ in range(50):
        try:
            stack.service("start", name)
            return
        except RuntimeError as busy:
            if "at work" not in str(busy):
                raise
            time.sleep(0.1)
    raise AssertionError(f"{name} could not be started again")


def rotate_keys_repeatedly(stack, simulator: Simulator, stop: threading.Event, revoked: list[dict]) -> None:
    """Replaces the credential files every second, like a mounted secret.

    Every twelve seconds they get new keys, and ten seconds later the old keys are revoked. A sender without the new
    keys fails from then on.
    """
    folder = stack.state / "credentials"
    for second in itertools.count():
        if stop.wait(1):
            return
        match second % (RELOAD_TIME + 2):
            case 0:
                fresh = new_credentials(folder, second)
                for key in fresh.public:
                    simulator.ask("POST", "/keys", key)
                for name, text in fresh.files.items():
                    replace(folder / name, text)
            case age if age == RELOAD_TIME:
                for key in fresh.public:
                    simulator.ask("POST", "/keys", key | {"revokes_others": True})
                revoked.append(simulator.summary())
            case _:
                for name in ("apns.p8", "service-account.json"):
                    replace(folder / name, (folder / name).read_text())


@dataclass
class Credentials:
    """New contents of the credential files, and their public keys for the simulator."""

    files: dict[str, str]
    public: list[dict]


def new_credentials(folder: pathlib.Path, number: int) -> Credentials:
    ec = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    rsa = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
    account = json.loads((folder / "service-account.json").read_text())
    account |= {"private_key": rsa, "private_key_id": f"demo-key-{number}"}
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
