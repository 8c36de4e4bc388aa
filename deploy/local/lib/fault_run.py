"""A run with every provider fault of the simulator, and its counts."""

import collections
import json
import sys
import time

from simulated_users import PORTS, SimulatedUsers, Evidence, Outcomes, Simulator, lanes_open
from local_stack import eventually

# Responses that deactivate a token. Others must not end a registration.
# Reasons that count against a token while its route accepts others (ProviderFacts.md, section C.4).
BELIEVED = {"400 BadDeviceToken", "403 SENDER_ID_MISMATCH"}
GONE = {
    "410 Unregistered", "410 ExpiredToken", "410 without timestamp", "404 UNREGISTERED", "400 gone at Apple",
    "400 token", "400 fid",
}
# Access tokens are fetched once an hour, so a smaller share would cause no fault.
OAUTH_SHARE = 0.04
REVOCATION = {"revoke_access_tokens": True, "every_ms": 10000}


def fault_run(
    stack, pushes: int, lifetime: float, share: float = 0.01, connection_share: float = 0.0005,
    lane_share: float = 0.0005, handshake_share: float = 0.01, seed: int = 1
) -> dict:
    """Sends `pushes` with a lifetime of `lifetime` seconds each, and returns counts.

    Each fault of single requests gets `share` of the requests. Faults that break a connection also lose its other
    responses, and faults that pause a route stop it for at least half a minute. They get the smaller `connection_share`
    and `lane_share`, otherwise most pushes would expire. Each handshake fault gets `handshake_share` of the
    connections.
    """
    simulator = Simulator(stack)
    simulator.ask("DELETE", "/requests")
    groups = [SimulatedUsers(stack, "apns", pushes * 3 // 5), SimulatedUsers(stack, "fcm", pushes - pushes * 3 // 5)]
    for group in groups:
        group.register()
    evidence = Evidence(simulator, ["apns", "fcm"])
    started = time.monotonic()
    with Outcomes(stack.env["AMQP_URL"]) as outcomes:
        faults = sum(
            len(simulator.script_faults(party, share, connection_share, lane_share, seed)) for party in ("apns", "fcm"))
        faults += len(simulator.script_faults("oauth", OAUTH_SHARE, OAUTH_SHARE, OAUTH_SHARE, seed))
        faults += simulator.script_handshakes(handshake_share)
        simulator.ask("POST", "/disturbances", REVOCATION)
        for group in groups:
            # Messages with one target, and messages with many targets of which some fail.
            group.notify(lifetime, range(0, group.size, 2))
            group.notify(lifetime, range(1, group.size, 2), together=20)
        everyone = groups[0].notifications | groups[1].notifications

        def accounted() -> bool:
            evidence.collect()
            return len(outcomes.of(everyone)) == len(everyone)

        try:
            eventually(accounted, lifetime + 120 + pushes / 100, "an outcome for every push")
        except AssertionError:
            simulator.clear_faults()
            missing = [one for one in everyone if one not in outcomes.by_notification]
            raise AssertionError(
                f"{len(missing)} of {len(everyone)} have no outcome; queued: {depths(stack)}, "
                f"dead letters: {depths(stack, dead=True)}, routes: {lanes_open(stack)}")
        simulator.clear_faults()
        evidence.collect()
        found = outcomes.of(everyone)
        open_again = reopen(stack, groups, outcomes)
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
        "deactivated": sum(len(group.inactive()) for group in groups),
        "wrongly_deactivated": wrongly_deactivated(groups, evidence), "lanes_open": open_again,
    }
    print(json.dumps({key: value for key, value in result.items() if key != "lanes_open"}), file=sys.stderr)
    return result


def wrongly_deactivated(groups, evidence: Evidence) -> dict[str, list[str]]:
    inactive = {token for group in groups for token in group.inactive()}
    return {
        token[:12]: sorted(evidence.faults[token])
        for token in inactive if not evidence.faults[token] & (GONE | BELIEVED)}


def reopen(stack, groups, outcomes: Outcomes) -> bool:
    """Whether every route sends again after the faults end, including routes without waiting pushes.

    A long rejected route probes every fifteen minutes. Earlier pushes may have expired.
    """
    deadline = time.monotonic() + 17 * 60
    while time.monotonic() < deadline:
        probes = set().union(*(group.notify(600, fresh(group)) for group in groups))
        eventually(lambda: len(outcomes.of(probes)) == len(probes), 16 * 60, "an outcome for the probe pushes")
        lanes = lanes_open(stack)
        if all(lanes.values()) and {outcomes.of(probes)[one][0] for one in probes} == {"accepted"}:
            return True
        shut = [lane for lane, is_open in lanes.items() if not is_open]
        said = collections.Counter(outcomes.of(probes)[one][0] for one in probes)
        print(f"    routes still paused: {shut}, {dict(said)}", file=sys.stderr)
        time.sleep(15)
    return False


def fresh(group: SimulatedUsers) -> list[int]:
    """Users of each app with an active registration."""
    gone = set(group.inactive())
    return [number for number in range(group.size) if group.token(number) not in gone][: 4 * len(group.apps)]


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
