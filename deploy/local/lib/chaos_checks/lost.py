"""I1: nothing that was confirmed is lost.

Each confirmed event ends, for each of its users, as accepted, skipped, inbox only, dropped, held, expired or
dead-lettered. Each confirmed request of a phone has its effect.
"""

import collections
import re

from chaos_history import Run, Verdict, device_id

UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
# Without a fault, an event is decided within these seconds. The counters of discarded events end with their process.
DECIDED_WITHIN = 5
RULES = {"crowd.called": "crowd", "campaign.started": "campaign"}


def check(run: Run) -> Verdict:
    verdict = Verdict("I1")
    ends = collections.Counter()
    letters = DeadLetters(run)
    latest = {}
    for decision in sorted(run.decisions, key=lambda one: one.step):
        latest[decision.notification] = decision
    # The summary of a digest has a decision of its own.
    by_recipient = collections.defaultdict(list)
    for decision in latest.values():
        by_recipient[decision.event, decision.rule, decision.user].append(decision)
    outcomes = collections.defaultdict(set)
    for outcome in run.outcomes:
        outcomes[outcome.notification].add(outcome.disposition)
    held, gathered, stored = set(run.held), set(run.gathered), set(run.events)
    erased = {one.user for one in run.operations if one.kind == "erased"}
    uncounted = 0
    for event in {one.event: one for one in run.published()}.values():
        rule = RULES.get(event.type, event.type.removeprefix("note."))
        if event.event not in stored:
            if letters.has(event.event):
                ends["dead-lettered"] += 1
            elif event.expires is not None and not is_decidable(run, event):
                uncounted += 1
                ends["event expired"] += 1
            else:
                verdict.violations.append(f"event {event.event} ({event.type}) was confirmed at {event.ended:.3f} and "
                                          "is neither stored nor a dead letter")
            continue
        if event.type == "campaign.started":
            continue
        for user in event.users:
            if user in erased:
                continue
            decisions = by_recipient[event.event, rule, user]
            if not decisions:
                verdict.violations.append(f"event {event.event}: no decision about {user}")
            for decision in decisions:
                end = end_of(decision, outcomes[decision.notification], held, gathered, letters)
                ends[end or "lost"] += 1
                if end is None:
                    verdict.violations.append(
                        f"event {event.event}, user {user}: {decision.answer} ({decision.reason}) at step "
                        f"{decision.step} has no end: notification {decision.notification}")
    restarts = any(fault.choices.get("service", fault.name).startswith("rules") for fault in run.faults)
    if uncounted > run.discards.get("expired", 0) and not restarts:
        verdict.violations.append(
            f"{uncounted} expiring events are not stored, and only {run.discards.get('expired', 0):g} were discarded")
    unexplained(run, latest, verdict)
    campaigns(run, verdict)
    registrations(run, verdict)
    verdict.violations += [f"{table} has rows of {user}, who was erased" for table, user in run.remains]
    verdict.violations += [f"a dead letter in {one.queue} has no reason" for one in run.dead if not one.reason]
    verdict.violations += [f"unfinished at the end: {what}" for what in run.undrained]
    verdict.figures = {
        "confirmed_events": len({one.event for one in run.published()}), "ends": dict(ends),
        "dead_letters": collections.Counter(f"{one.queue}: {one.reason}" for one in run.dead),
    }
    return verdict


def is_decidable(run: Run, event) -> bool:
    """Whether an expiring event has enough time to be decided, and no fault takes it away."""
    return event.expires - event.ended >= DECIDED_WITHIN and not any(
        fault.began <= event.expires and fault.over >= event.began for fault in run.faults)


def end_of(decision, outcomes: set[str], held: set[str], gathered: set[str], letters: "DeadLetters") -> str | None:
    """How a decision ended; None if it has no end."""
    if decision.answer.startswith("push"):
        if "accepted" in outcomes:
            return "accepted"
        if outcomes:
            return sorted(outcomes)[0]
        return "dead-lettered" if letters.has(decision.notification) else None
    if decision.answer == "hold":
        return "held" if decision.notification in held else None
    if decision.answer == "digest":
        if decision.reason == "summed-up":
            return "summed up"
        return "gathered" if decision.notification in gathered else None
    return decision.answer


class DeadLetters:
    """The ids in dead letters."""

    def __init__(self, run: Run):
        self.bodies = [letter.body for letter in run.dead]
        self.ids = {id.lower() for body in self.bodies for id in UUID.findall(body)}

    def has(self, id: str) -> bool:
        return id in self.ids or any(f'"{id}"' in body for body in self.bodies)


def unexplained(run: Run, latest: dict, verdict: Verdict) -> None:
    """Outcomes that contradict the simulator's log, the bus or the registrations."""
    devices = {device_id(one.app, one.provider, one.token): one for one in run.operations if one.token}
    answered = {(request.token, request.event) for request in run.requests if request.accepted}
    stored = {(one.notification, one.device, one.disposition) for one in run.outcomes}
    steady = {user for one in run.published() if one.steady for user in one.users}
    refused = {request.token for request in run.requests if request.status in (400, 404, 410)}
    ended = {one.user for one in devices.values() if one.token in refused}
    for outcome in run.outcomes:
        decision = latest.get(outcome.notification)
        if decision is None or decision.rule == "gathered":
            continue
        phone = devices.get(outcome.device or "")
        if outcome.disposition == "accepted" and phone and (phone.token, decision.event) not in answered:
            verdict.violations.append(f"event {decision.event} has the outcome accepted on {outcome.device}, "
                                      "and the provider accepted no such request")
        if outcome.reason == "no-device" and decision.user in steady - ended:
            verdict.violations.append(f"event {decision.event}: no device of {decision.user}, who has one")
    for outcome in run.tapped:
        known = outcome.notification in latest
        if known and (outcome.notification, outcome.device, outcome.disposition) not in stored:
            verdict.violations.append(f"the outcome {outcome.disposition} of {outcome.notification} was published and "
                                      "is not stored")


def campaigns(run: Run, verdict: Verdict) -> None:
    """A campaign reaches the phone of every steady user."""
    steady = {user for one in run.published() if one.steady for user in one.users}
    tokens = collections.defaultdict(set)
    for one in run.operations:
        if one.kind == "registered" and one.result == "ok" and one.user in steady:
            tokens[one.app].add(one.token)
    refused = {request.token for request in run.requests if request.status in (400, 404, 410)}
    reached = collections.defaultdict(set)
    for request in run.requests:
        if request.accepted:
            reached[request.event].add(request.token)
    for event in {one.event: one for one in run.published() if one.type == "campaign.started"}.values():
        missed = tokens[event.app] - reached[event.event] - refused
        if missed:
            verdict.violations.append(f"campaign {event.event} missed {len(missed)} of {len(tokens[event.app])} phones")


def registrations(run: Run, verdict: Verdict) -> None:
    """The last request about a token decides its row, unless a provider has refused the token since."""
    rows = {row.device: row for row in run.registrations}
    last = {}
    for one in run.operations:
        if one.kind in ("registered", "signed-out", "erased") and one.token:
            last[one.app, one.provider, one.token] = one
    refused = collections.defaultdict(float)
    for request in run.requests:
        if request.status in (400, 404, 410):
            refused[request.token] = max(refused[request.token], request.at)
    told = set(run.announced)
    for (app, provider, token), one in last.items():
        # Without an answer, both states are right.
        if one.result != "ok" or refused[token] >= one.began:
            continue
        device = device_id(app, provider, token)
        row = rows.get(device)
        found = f"{row.state} of {row.user}" if row else "absent"
        is_active = row is not None and row.state == "active" and row.user == one.user
        if is_active != (one.kind == "registered"):
            verdict.violations.append(f"device {device}: {one.kind} by {one.user} at {one.ended:.3f} was confirmed, "
                                      f"and the registration is {found}")
        if one.kind == "registered" and run.announced and ("registered", one.user, device) not in told:
            verdict.violations.append(f"device {device}: no event about its registration by {one.user}")
