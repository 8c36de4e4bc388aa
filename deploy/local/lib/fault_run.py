"""A run in which providers do everything wrong that the simulator can, and what must be true when it is over."""

import collections
import json
import sys
import time

from crowd import PORTS, Crowd, Evidence, Outcomes, Simulator, lanes_open
from local_stack import eventually

# What tells that a token is gone; everything else may not cost a registration.
# Believed of a token on a lane that takes others (push-protocols B06).
BELIEVED = {"400 BadDeviceToken", "403 SENDER_ID_MISMATCH"}
GONE = {
    "410 Unregistered", "410 ExpiredToken", "410 without timestamp", "404 UNREGISTERED", "400 gone at Apple",
    "400 token", "400 fid",
}
# Tokens are fetched once an hour: with one in a hundred of them at fault, no fault would be met.
OAUTH_SHARE = 0.04
REVOCATION = {"revoke_access_tokens": True, "every_ms": 10000}


def fault_run(
    stack, pushes: int, lifetime: float, share: float = 0.01, connection_share: float = 0.0005,
    lane_share: float = 0.0005, handshake_share: float = 0.01, seed: int = 1
) -> dict:
    """Sends `pushes`, each of which may be tried for `lifetime` seconds, and returns what was counted.

    `share` of the requests meet each fault that is about one request. One that breaks a connection takes the answers of
    everything on it along, and one that stops a lane has it wait for half a minute and longer: these are drawn for
    `connection_share` and `lane_share`. With one in a hundred of each kind no connection would live for four requests,
    and a lane would send six of them between two pauses: nothing would be shown but that pushes expire. Of the connections
    `handshake_share` meet each fault that comes before HTTP/2.
    """
    simulator = Simulator(stack)
    simulator.ask("DELETE", "/requests")
    crowds = [Crowd(stack, "apns", pushes * 3 // 5), Crowd(stack, "fcm", pushes - pushes * 3 // 5)]
    for crowd in crowds:
        crowd.register()
    evidence = Evidence(simulator, ["apns", "fcm"])
    started = time.monotonic()
    with Outcomes(stack.env["AMQP_URL"]) as outcomes:
        faults = sum(
            len(simulator.every_fault(party, share, connection_share, lane_share, seed)) for party in ("apns", "fcm"))
        faults += len(simulator.every_fault("oauth", OAUTH_SHARE, OAUTH_SHARE, OAUTH_SHARE, seed))
        faults += simulator.every_handshake(handshake_share)
        simulator.ask("POST", "/disturbances", REVOCATION)
        for crowd in crowds:
            # A message with one target and a message with many of which some fail are settled differently.
            crowd.notify(lifetime, range(0, crowd.size, 2))
            crowd.notify(lifetime, range(1, crowd.size, 2), together=20)
        everyone = crowds[0].notifications | crowds[1].notifications

        def accounted() -> bool:
            evidence.collect()
            return len(outcomes.of(everyone)) == len(everyone)

        try:
            eventually(accounted, lifetime + 120 + pushes / 100, "an outcome for every push")
        except AssertionError:
            simulator.calm()
            missing = [one for one in everyone if one not in outcomes.by_notification]
            raise AssertionError(
                f"{len(missing)} of {len(everyone)} have no outcome; waiting: {depths(stack)}, "
                f"dead letters: {depths(stack, dead=True)}, lanes: {lanes_open(stack)}")
        simulator.calm()
        evidence.collect()
        found = outcomes.of(everyone)
        open_again = reopen(stack, crowds, outcomes)
    several = {one: said for one, said in found.items() if len(said) != 1}
    summary = simulator.summary()
    handshakes = {port: summary["connections"][port]["brokenHandshakes"] for port in PORTS}
    result = {
        "pushes": len(everyone), "faults": faults, "share": share, "connection_share": connection_share,
        "lane_share": lane_share, "seconds": round(time.monotonic() - started),
        "played": {p: sum(summary[p]["faults"].values()) for p in ("apns", "fcm", "oauth")},
        "kinds_played": {
            **{p: len(summary[p]["faults"]) for p in ("apns", "fcm", "oauth")},
            "handshakes": sum(len(kinds) for kinds in handshakes.values()),
        },
        "handshakes": handshakes,
        "requests": {p: summary[p]["count"] for p in ("apns", "fcm")},
        "repeated_at_the_provider": {p: summary[p]["duplicates"] for p in ("apns", "fcm")},
        "dispositions": dict(collections.Counter(said[0] for said in found.values())),
        "with_several_outcomes": len(several), "dead": depths(stack, dead=True),
        "deactivated": sum(len(crowd.inactive()) for crowd in crowds),
        "wrongly_deactivated": wrongly_deactivated(crowds, evidence), "lanes_open": open_again,
    }
    print(json.dumps({key: value for key, value in result.items() if key != "lanes_open"}), file=sys.stderr)
    return result


def wrongly_deactivated(crowds, evidence: Evidence) -> dict[str, list[str]]:
    inactive = {token for crowd in crowds for token in crowd.inactive()}
    return {
        token[:12]: sorted(evidence.faults[token])
        for token in inactive if not evidence.faults[token] & (GONE | BELIEVED)}


def reopen(stack, crowds, outcomes: Outcomes) -> bool:
    """Whether every lane sends again once the providers do: those that pushes wait for, and those that none goes to.

    A lane that was refused long enough probes every quarter of an hour. What was sent before that may have expired.
    """
    deadline = time.monotonic() + 17 * 60
    while time.monotonic() < deadline:
        probes = set().union(*(crowd.notify(600, fresh(crowd)) for crowd in crowds))
        eventually(lambda: len(outcomes.of(probes)) == len(probes), 16 * 60, "an outcome for the pushes that probe")
        lanes = lanes_open(stack)
        if all(lanes.values()) and {outcomes.of(probes)[one][0] for one in probes} == {"accepted"}:
            return True
        shut = [lane for lane, is_open in lanes.items() if not is_open]
        said = collections.Counter(outcomes.of(probes)[one][0] for one in probes)
        print(f"    not every lane is open yet: {shut}, {dict(said)}", file=sys.stderr)
        time.sleep(15)
    return False


def fresh(crowd: Crowd) -> list[int]:
    """Users of each app whose device is still there."""
    gone = set(crowd.inactive())
    return [number for number in range(crowd.size) if crowd.token(number) not in gone][: 4 * len(crowd.apps)]


def depths(stack, dead: bool = False) -> dict[str, int]:
    queues = ["token-registry.devices", "feedback.outcomes", "rules.outcomes"]
    for app, provider in (("family-portal", "apns"), ("hide-and-seek", "apns"), ("family-portal", "fcm")):
        queues += [f"{provider}-sender.pushes.{lane}.{app}" for lane in ("interactive", "bulk")]
    queues += [f"token-registry.notifications.{lane}" for lane in ("interactive", "bulk")]
    for app in ("family-portal", "hide-and-seek"):
        queues += [f"rules.events.app.{app}", f"token-registry.devices.app.{app}"]
        queues += [f"token-registry.notifications.{lane}.app.{app}" for lane in ("interactive", "bulk")]
    if not dead:
        queues += [f"retry.{level}" for level in ("5s", "30s", "2m", "15m", "1h", "6h")]
    if dead:
        queues = [f"{queue}.dead" for queue in queues]
    found = {queue: stack.depth(queue) for queue in queues}
    return {queue: depth for queue, depth in found.items() if depth > 0}
