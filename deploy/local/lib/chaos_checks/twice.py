"""I3: no decision, charge, digest or inbox row twice. Caps are computed again from the decision log."""

import collections

from chaos_history import Run, Verdict

# The caps of benches/chaos/rules.yaml by rule: name, pushes, seconds.
CAPS = {"capped": ("few", 3, 3600), "waiting": ("slow", 2, 20)}
# The times in the log have microseconds, and charges whole milliseconds.
ROUNDING = 0.002
# A transaction reads the clock before it waits for a user's row. Meanwhile another one charges a later time.
WAITING = 10


def check(run: Run) -> Verdict:
    verdict = Verdict("I3")
    events = collections.Counter(run.events)
    verdict.violations += [f"event {id} is stored twice" for id, count in events.items() if count > 1]
    notifications = collections.defaultdict(set)
    pushes = collections.Counter()
    for one in run.decisions:
        if one.rule != "gathered":
            notifications[one.event, one.rule, one.user].add(one.notification)
        if one.answer.startswith("push"):
            pushes[one.notification] += 1
    verdict.violations += [f"event {event}, rule {rule}: {len(ids)} notifications to {user}"
                           for (event, rule, user), ids in notifications.items() if len(ids) > 1]
    verdict.violations += [f"notification {id} was decided to be pushed {count} times"
                           for id, count in pushes.items() if count > 1]
    kept = collections.Counter((user, saying) for _, user, saying in run.inbox)
    verdict.violations += [f"the inbox of {user} has {count} rows of {saying}"
                           for (user, saying), count in kept.items() if count > 1]
    outcomes(run, verdict)
    digests(run, verdict)
    for rule, cap in CAPS.items():
        caps(run, rule, *cap, verdict)
    verdict.figures = {"decisions": len(run.decisions), "inbox_rows": len(run.inbox), "digests": len(run.summaries),
                       "charged_users": len(run.charges)}
    return verdict


def outcomes(run: Run, verdict: Verdict) -> None:
    """One outcome of each push, except where a fault makes a sender send or judge it again."""
    dispositions = collections.defaultdict(set)
    for one in run.outcomes:
        if one.device:
            dispositions[one.notification, one.device].add(one.disposition)
    several = [(key, sorted(words)) for key, words in dispositions.items() if len(words) > 1]
    bound = sum(fault.extra_pushes for fault in run.faults)
    if len(several) > bound:
        verdict.violations.append(
            f"{len(several)} pushes have several outcomes, and the faults allow {bound}: {several[0]}")


def digests(run: Run, verdict: Verdict) -> None:
    """Each gathered notification is in one summary."""
    told = collections.Counter(one.user for one in run.decisions if one.reason == "summed-up")
    said = collections.Counter()
    for user, items in run.summaries:
        said[user] += items
    for user in sorted(told.keys() | said.keys()):
        if told[user] != said[user]:
            verdict.violations.append(f"the digests of {user} have {said[user]} items, and {told[user]} were summed up")


def caps(run: Run, rule: str, cap: str, limit: int, within: float, verdict: Verdict) -> None:
    """Each push is charged once, and a push is refused only if its cap is full."""
    pushed, refused = collections.defaultdict(list), collections.defaultdict(list)
    for one in run.decisions:
        if one.rule == rule:
            if one.answer == "push":
                pushed[one.app, one.user].append(one.at)
            elif one.reason == "capped":
                refused[one.app, one.user].append(one.at)
    charged = {(one.app, one.user): one.times for one in run.charges if one.cap == cap}
    for key in sorted(pushed.keys() | charged.keys() | refused.keys()):
        times, charges = sorted(pushed[key]), sorted(charged.get(key, []))
        expected = times[-limit:]
        if len(expected) != len(charges) or any(abs(a - b) > ROUNDING for a, b in zip(expected, charges)):
            verdict.violations.append(
                f"cap {cap} of {key[1]}: the pushes are at {shown(expected)}, charged are {shown(charges)}")
        for first, last in zip(times, times[limit:]):
            if last - first < within - ROUNDING:
                verdict.violations.append(f"cap {cap} of {key[1]}: {limit + 1} pushes from {first:.3f} to {last:.3f}")
        for at in refused[key]:
            before = sum(at - within - ROUNDING < time <= at + WAITING for time in times)
            if before < limit:
                verdict.violations.append(f"cap {cap} of {key[1]} refused a push at {at:.3f} after {before} pushes")


def shown(times: list[float]) -> str:
    return "[" + ", ".join(f"{time:.3f}" for time in times) + "]"
