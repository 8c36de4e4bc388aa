"""I7: each fault shows the signals by which an operator notices it."""

from chaos_history import Run, Verdict


def check(run: Run) -> Verdict:
    verdict = Verdict("I7")
    for fault in run.faults:
        verdict.violations += [f"{fault.name}: {signal}" for signal in fault.missing]
    verdict.figures = {"seen": sum(len(fault.seen) for fault in run.faults),
                       "missing": sum(len(fault.missing) for fault in run.faults)}
    return verdict
