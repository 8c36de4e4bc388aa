"""I6: memory and descriptors of each process are flat, measured while nothing waits."""

import collections
import statistics

from chaos_history import Run, Sample, Verdict

# The most growth of one process between its first and its last samples. Caches fill after a start.
MEGABYTES, DESCRIPTORS = 64, 24
# Above this slope in a run of an hour, memory is not flat.
MEGABYTES_AN_HOUR, LONG = 20, 3600


def check(run: Run) -> Verdict:
    verdict = Verdict("I6")
    processes = collections.defaultdict(list)
    for sample in run.samples:
        processes[sample.service, sample.pid].append(sample)
    figures = collections.defaultdict(list)
    for (service, pid), samples in processes.items():
        if len(samples) < 3:
            continue
        samples.sort(key=lambda one: one.at)
        figures[service].append(figures_of(samples))
        for name, limit in (("resident", MEGABYTES), ("descriptors", DESCRIPTORS)):
            first, last = figures[service][-1][name]
            if last - first > limit:
                verdict.violations.append(f"{name} of {service} ({pid}) grew by {last - first:.0f}")
        slope = figures[service][-1].get("megabytes_an_hour", 0)
        if slope > MEGABYTES_AN_HOUR:
            verdict.violations.append(f"resident memory of {service} ({pid}) grows by {slope:.0f} MB an hour")
    verdict.figures = {"processes": len(processes), **figures}
    return verdict


def figures_of(samples: list[Sample]) -> dict:
    """The medians of the first and the last quarter, and in a long run the slope after the first quarter."""
    edge = max(1, len(samples) // 4)

    def ends(value) -> list[float]:
        return [round(statistics.median(map(value, part)), 1) for part in (samples[:edge], samples[-edge:])]

    seconds = samples[-1].at - samples[0].at
    figures = {"minutes": round(seconds / 60), "samples": len(samples),
               "resident": ends(lambda one: one.resident), "descriptors": ends(lambda one: one.descriptors)}
    if seconds >= LONG:
        # The first quarter fills caches.
        steady = [(one.at / 3600, one.resident) for one in samples[edge:]]
        figures["megabytes_an_hour"] = round(theil_sen(steady), 2)
    return figures


def theil_sen(points: list[tuple[float, float]]) -> float:
    """The median slope of all pairs of points."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0
