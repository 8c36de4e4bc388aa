"""I6: memory and descriptors of each process are flat, measured while nothing waits."""

import collections
import statistics

from chaos_history import Run, Verdict

# The most growth of one process between its first and its last samples. Caches fill after a start.
MEGABYTES, DESCRIPTORS = 64, 24
# Above this slope in a run of an hour, memory is not flat.
MEGABYTES_AN_HOUR, LONG = 20, 3600


def check(run: Run) -> Verdict:
    verdict = Verdict("I6")
    processes = collections.defaultdict(list)
    for sample in run.samples:
        processes[sample.service, sample.pid].append(sample)
    worst = collections.defaultdict(float)
    for (service, pid), samples in processes.items():
        if len(samples) < 3:
            continue
        samples.sort(key=lambda one: one.at)
        edge = max(1, len(samples) // 4)
        for what, limit, value in (("resident", MEGABYTES, lambda one: one.resident),
                                   ("descriptors", DESCRIPTORS, lambda one: one.descriptors)):
            growth = statistics.median(map(value, samples[-edge:])) - statistics.median(map(value, samples[:edge]))
            worst[what] = max(worst[what], growth)
            if growth > limit:
                verdict.violations.append(f"{what} of {service} ({pid}) grew by {growth:.0f}")
        seconds = samples[-1].at - samples[0].at
        # The first quarter fills caches.
        steady = samples[edge:]
        if seconds < LONG:
            continue
        slope = theil_sen([(one.at / 3600, one.resident) for one in steady])
        worst["megabytes_an_hour"] = max(worst["megabytes_an_hour"], slope)
        if slope > MEGABYTES_AN_HOUR:
            verdict.violations.append(f"resident memory of {service} ({pid}) grows by {slope:.0f} MB an hour")
    verdict.figures = {"processes": len(processes), **{name: round(value, 1) for name, value in worst.items()}}
    return verdict


def theil_sen(points: list[tuple[float, float]]) -> float:
    """The median slope of all pairs of points."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0
