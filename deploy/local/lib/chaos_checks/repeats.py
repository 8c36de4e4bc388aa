"""I2: pushes arrive once, except for the bound of the faults that happened, and only during their effects."""

import collections

from chaos_history import Run, Verdict

# Seconds after the recovery in which a repeat still belongs to a fault.
MARGIN = 5


def check(run: Run) -> Verdict:
    verdict = Verdict("I2")
    arrivals = collections.defaultdict(list)
    for request in run.requests:
        if request.accepted and request.event:
            arrivals[request.provider, request.token, request.rule, request.event].append(request.at)
    extras = []
    for (_, _, rule, event), times in arrivals.items():
        times.sort()
        extras += [(rule, event, at, times[0]) for at in times[1:]]
    allowing = [fault for fault in run.faults if fault.extra_pushes]
    bound = sum(fault.extra_pushes for fault in allowing)
    if len(extras) > bound:
        verdict.violations.append(f"{len(extras)} extra pushes, and the faults allow {bound}")
    by_fault = collections.Counter()
    for rule, event, at, first in extras:
        if rule == "once":
            verdict.violations.append(f"event {event} was to be sent at most once, and arrived again at {at:.3f}")
        span = next((fault for fault in allowing if fault.began <= at <= fault.over + MARGIN
                     or fault.began <= first <= fault.over + MARGIN), None)
        if span is None:
            verdict.violations.append(f"event {event} ({rule}) arrived at {first:.3f} and again at {at:.3f}, outside "
                                      "of every fault that allows it")
        else:
            by_fault[span.name] += 1
    verdict.figures = {"pushes": len(arrivals), "extra": len(extras), "bound": bound, "by_fault": dict(by_fault)}
    return verdict
