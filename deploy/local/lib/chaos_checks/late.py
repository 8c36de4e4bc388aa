"""I9: no push is sent after the expiry of its event."""

import re

from chaos_history import Run, Verdict

# Between the sender's last look at its clock and the arrival at the provider. A machine with other programs on it
# suspends both for longer than half a second.
UNDER_WAY = 1
# Faults that hold up a request which the sender has written, or change a sender's clock or pace.
HOLDING = re.compile(r"frozen|network-providers|clock-jump|processor|providers-(half-open|silent|slow|one-stream)|away")


def check(run: Run) -> Verdict:
    verdict = Verdict("I9")
    expiries = {one.event: one.expires for one in run.operations if one.kind == "published" and one.expires is not None}
    in_time = 0
    for request in run.requests:
        expires = expiries.get(request.event)
        if expires is None or not request.accepted:
            continue
        limit = max([expires, *(fault.over for fault in run.faults
                                if HOLDING.search(fault.name) and fault.began <= expires + UNDER_WAY
                                and fault.over >= expires)]) + UNDER_WAY
        if request.at <= limit:
            in_time += 1
        else:
            verdict.violations.append(
                f"event {request.event} expired at {expires:.3f} and was accepted at {request.at:.3f}")
    verdict.figures = {"expiring": len(expiries), "sent_in_time": in_time}
    return verdict
