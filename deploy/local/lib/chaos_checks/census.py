"""IC: a message that is taken from a queue by hand is named by the census with its stage, and no other is missing."""

from chaos_history import Run, Verdict

# Seconds from the loss until the census names it.
LIMIT = 60


def check(run: Run) -> Verdict:
    verdict = Verdict("IC")
    loss = run.census
    if loss is None:
        verdict.violations.append("no message was taken from a queue")
        return verdict
    if loss.problem:
        verdict.violations.append(f"the loss of event {loss.event} ({loss.state}) failed: {loss.problem}")
    elif loss.named != loss.state:
        verdict.violations.append(f"the census named {loss.named} for event {loss.event}, which is {loss.state}")
    elif loss.seconds > LIMIT:
        verdict.violations.append(f"event {loss.event} ({loss.state}) was named after {loss.seconds:.0f} s")
    verdict.violations += [f"the census names a message that was not taken: {other}" for other in loss.others]
    verdict.figures = {"state": loss.state, "seconds": round(loss.seconds, 1), "others": len(loss.others)}
    return verdict
