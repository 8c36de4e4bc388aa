"""IP: no push goes to a former user of a phone, to a phone without a user, or to a user who has switched pushes off.

The guarantee: pushes sent until the revocation arrives, about half a second later, are not stopped. A fault delays the
revocation until its end.
"""

import collections
import re

from chaos_history import Run, Verdict

# Seconds until a revocation arrives; and after the recovery from a fault that delays it.
BOUND, AFTER_FAULT = 2, 3
# Faults that do not delay a revocation, or the arrival of a request that was sent before it. A sender reads the stream
# of revocations before its first push.
PROMPT = re.compile(r"(rules|feedback|apns-sender|fcm-sender)-(killed|stopped)$"
                    r"|(fcm|apns)-(unavailable|too-many-requests)|fcm-quota-exhausted|google-|apns-provider-token"
                    r"|queue-full|binding-removed|queue-deleted")
# The database's clock, as a process continues it, and ours.
CLOCKS = 0.1
# Seconds from the time in a decision until its transaction has read the settings, of a push that did not arrive. The
# time is the begin of the batch.
DECIDING = 5


def check(run: Run) -> Verdict:
    verdict = Verdict("IP")
    recipients = {one.event: one.users[0] for one in run.operations
                  if one.kind == "published" and len(one.users) == 1}
    arrivals = collections.defaultdict(list)
    for request in run.requests:
        if request.accepted and request.event in recipients:
            arrivals[request.token, recipients[request.event]].append(request)
    looked_at = 0
    for token, user, begin, end in lost(run):
        looked_at += 1
        for request in arrivals[token, user]:
            if late(run, begin, end, request.at):
                verdict.violations.append(
                    f"event {request.event} for {user} was accepted at {request.at:.3f}, and the user had lost the "
                    f"phone at {begin:.3f}")
    verdict.figures = {"lost_phones": looked_at, "phones_without_user": vacancies(run, recipients, verdict),
                       "switched_off": refusals(run, arrivals, verdict)}
    return verdict


def vacancies(run: Run, recipients: dict[str, str], verdict: Verdict) -> int:
    """Checks the phones that nobody has, for events to several users too. Returns the number of spans."""
    by_token, arrivals = collections.defaultdict(list), collections.defaultdict(list)
    for one in run.operations:
        if one.kind in ("registered", "signed-out", "erased") and one.token:
            by_token[one.token].append(one)
    for request in run.requests:
        if request.accepted:
            arrivals[request.token].append(request)
    spans = 0
    for token, operations in by_token.items():
        operations.sort(key=lambda one: one.began)
        for index, one in enumerate(operations):
            if one.kind == "registered" or one.result != "ok":
                continue
            spans += 1
            end = next((other.began for other in operations[index + 1:] if other.kind == "registered"), float("inf"))
            # lost() reports the events to this user alone.
            verdict.violations += [
                f"event {request.event} ({request.rule}) was accepted at {request.at:.3f} on a phone that nobody has "
                f"since {one.ended:.3f} ({one.user} {one.kind})"
                for request in arrivals[token]
                if recipients.get(request.event) != one.user and late(run, one.ended, end, request.at)]
    return spans


def late(run: Run, begin: float, end: float, at: float) -> bool:
    """Whether an arrival in the span is later than its bound."""
    if not begin + BOUND < at < end:
        return False
    overs = [fault.over + AFTER_FAULT for fault in run.faults
             if not PROMPT.match(fault.name) and fault.began <= at and fault.over + AFTER_FAULT >= begin - BOUND]
    return at > max(overs, default=0)


def lost(run: Run):
    """Each span in which a user no longer has a phone: token, user, begin, end."""
    by_token = collections.defaultdict(list)
    for one in run.operations:
        if one.kind in ("registered", "signed-out", "erased") and one.token:
            by_token[one.token].append(one)
    for token, operations in by_token.items():
        operations.sort(key=lambda one: one.began)
        for index, one in enumerate(operations):
            if one.result != "ok":
                continue
            former = {one.user} if one.kind != "registered" else {
                other.user for other in operations[:index] if other.user != one.user}
            for user in former:
                returns = (other.began for other in operations[index + 1:]
                           if other.kind == "registered" and other.user == user)
                yield token, user, one.ended, next(returns, float("inf"))


def refusals(run: Run, arrivals: dict, verdict: Verdict) -> int:
    """Checks the users who switch pushes off. Returns the number of spans."""
    by_user = collections.defaultdict(list)
    for one in run.operations:
        if one.kind == "preferred":
            by_user[one.user].append(one)
    pushed = collections.defaultdict(list)
    for decision in run.decisions:
        if decision.answer.startswith("push"):
            pushed[decision.user].append(decision)
    spans = 0
    for user, operations in by_user.items():
        for index, one in enumerate(operations):
            if one.wants or one.result != "ok":
                continue
            spans += 1
            end = next((other.began for other in operations[index + 1:] if other.wants), float("inf"))
            for decision in pushed[user]:
                if one.ended + CLOCKS < decision.at and decided_by(decision, arrivals[one.token, user]) < end - CLOCKS:
                    verdict.violations.append(f"event {decision.event} was pushed to {user} by a decision at "
                                              f"{decision.at:.3f}, switched off at {one.ended:.3f}")
            for request in arrivals[one.token, user]:
                if late(run, one.ended, end, request.at):
                    verdict.violations.append(f"event {request.event} was accepted at {request.at:.3f}, and {user} had "
                                              f"switched pushes off at {one.ended:.3f}")
    return spans


def decided_by(decision, arrivals: list) -> float:
    """The latest time at which the settings may have been read: the arrival of the push."""
    times = [request.at for request in arrivals if request.event == decision.event and request.at >= decision.at]
    return min(times, default=decision.at + DECIDING)
