"""I4: after each fault everything is ready and empty again without help, within the fault's limit."""

from chaos_history import Run, Verdict


def check(run: Run) -> Verdict:
    verdict = Verdict("I4")
    seconds, ready = {}, {}
    for fault in run.faults:
        if fault.problem:
            verdict.violations.append(f"{fault.name}: {fault.problem.strip()[-400:]}")
        if fault.recovered is None:
            verdict.violations.append(f"{fault.name}: not recovered {fault.recovery_limit:g} s after its end")
        else:
            seconds[fault.name] = round(max(seconds.get(fault.name, 0), fault.recovered - fault.ended), 1)
        ready[fault.name] = round(max(ready.get(fault.name, 0), fault.ready or 0), 1)
    verdict.figures = {"faults": len(run.faults), "ready_seconds": ready, "drained_seconds": seconds,
                       "worst": max(seconds.values(), default=0),
                       "last": round(run.faults[-1].recovered - run.faults[-1].ended, 1)
                       if run.faults and run.faults[-1].recovered else 0}
    return verdict
