"""I9: no push is sent after the expiry of its event."""

from chaos_history import Run, Verdict

# Between the sender's last look at its clock and the arrival at the provider.
UNDER_WAY = 0.5


def check(run: Run) -> Verdict:
    verdict = Verdict("I9")
    expiries = {one.event: one.expires for one in run.operations if one.kind == "published" and one.expires is not None}
    count = 0
    for request in run.requests:
        expires = expiries.get(request.event)
        if expires is None:
            continue
        count += 1
        # A request under way while the sender or the network stands still arrives when that ends.
        over = run.disturbed(expires - UNDER_WAY, expires) if request.accepted else None
        limit = max(expires, over or 0) + UNDER_WAY if is_halting(run, expires) else expires + UNDER_WAY
        if request.accepted and request.at > limit:
            verdict.violations.append(f"event {request.event} expired at {expires:.3f} and was accepted at {request.at:.3f}")
    verdict.figures = {"expiring": len(expiries), "sent_in_time": count}
    return verdict


def is_halting(run: Run, at: float) -> bool:
    """Whether a fault holds up requests that were already written, or shifts a clock."""
    return any(("frozen" in one.name or "network-providers" in one.name or "clock" in one.name
                or "processor" in one.name or "providers" in one.name)
               and one.began <= at <= one.over for one in run.faults)
