"""I5: interactive pushes beside large groups and campaigns are nearly as fast as alone."""

from chaos_history import Run, Verdict

# A debug build on two processors is noisy: the release figures are those of the bench `rules`.
RATIO = 5
# Below it, a ratio says little.
FLOOR = 0.2
LEAST = 50


def check(run: Run) -> Verdict:
    verdict = Verdict("I5")
    found = {}
    for phase in ("baseline", "bulk"):
        times = delays(run, *run.phases.get(phase, (0, 0)))
        if len(times) < LEAST:
            verdict.violations.append(f"{phase}: only {len(times)} interactive pushes")
            return verdict
        found[phase] = times[int(len(times) * 0.99)]
        verdict.figures[f"{phase}_p99_ms"] = round(found[phase] * 1000, 1)
    ratio = found["bulk"] / max(found["baseline"], FLOOR)
    verdict.figures["ratio"] = round(ratio, 2)
    if ratio > RATIO:
        verdict.violations.append(
            f"p99 {found['bulk'] * 1000:.0f} ms beside bulk, {found['baseline'] * 1000:.0f} ms alone")
    return verdict


def delays(run: Run, begin: float, end: float) -> list[float]:
    """Sorted seconds from the publish to the first arrival, of plain events to one user in a span."""
    first = {}
    for request in run.requests:
        first[request.event] = min(request.at, first.get(request.event, request.at))
    published = {}
    for one in run.published():
        if one.type == "note.plain" and one.steady and len(one.users) == 1 and begin <= one.began <= end:
            published.setdefault(one.event, one.began)
    return sorted(max(0, first[event] - began) for event, began in published.items() if event in first)
