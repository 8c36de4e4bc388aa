"""The checks of a chaos run. Each is a pure function of a Run that returns a Verdict."""

from chaos_checks import census, delay, late, lost, recovery, repeats, resources, secrets, signals, twice, wrong_person

CHECKS = {
    "I1": lost.check,
    "I2": repeats.check,
    "I3": twice.check,
    "I4": recovery.check,
    "I5": delay.check,
    "I6": resources.check,
    "I7": signals.check,
    "I8": secrets.check,
    "I9": late.check,
    "IC": census.check,
    "IP": wrong_person.check,
}


def check_all(run) -> list:
    return [check(run) for check in CHECKS.values()]
