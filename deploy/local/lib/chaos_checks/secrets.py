"""I8: no log contains a device token, a text of a notification, a key or a bearer token."""

from chaos_history import Run, Verdict


def check(run: Run) -> Verdict:
    return Verdict("I8", [f"{file} contains a {kind}" for file, kind in run.leaks], {"leaks": len(run.leaks)})
