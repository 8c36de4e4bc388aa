"""The end of a chaos run: waits until all work is done, and reads tables, dead-letter queues and logs."""

import json
import pathlib
import re
import time

from chaos_history import Charge, DeadLetter, Decision, Outcome, Registration, Run

# Work that is due within a minute; quiet hours hold beyond it. Each query counts the waiting rows.
PENDING = {
    "held notifications":
        "SELECT count(*) FROM rules.held WHERE due_at < now() + interval '1 minute' AND dead_at IS NULL",
    "digests": "SELECT count(*) FROM rules.digest WHERE close_at IS NOT NULL AND dead_at IS NULL",
    "fan-outs": "SELECT count(*) FROM rules.crowd WHERE due_at IS NOT NULL AND dead_at IS NULL",
    "preference changes": "SELECT count(*) FROM rules.preference_change WHERE dead_at IS NULL",
    "revocations": "SELECT count(*) FROM rules.revocation WHERE due_at IS NOT NULL AND dead_at IS NULL",
    "clear commands":
        "SELECT count(*) FROM rules.clear_command WHERE due_at < now() + interval '1 minute' AND dead_at IS NULL",
    "erasures": "SELECT count(*) FROM rules.erasure WHERE done_at IS NULL",
    "device events": "SELECT count(*) FROM registry.outbox",
    "campaigns": "SELECT count(*) FROM registry.campaign WHERE finished_at IS NULL",
    "pushes without an outcome": """
        SELECT count(*) FROM rules.decision d WHERE answer LIKE 'push%' AND reason <> 'audience'
        AND NOT EXISTS (SELECT FROM rules.outcome o WHERE o.notification = d.notification)""",
}
TABLES_OF_PEOPLE = ["decision", "inbox", "held", "person", "digest_item"]


def await_end(stack, patience: float) -> tuple[str, ...]:
    """Waits until nothing is pending, or nothing was finished for `patience` seconds. Returns the pending work."""
    least, deadline = None, time.monotonic() + patience
    while True:
        counts = {what: int(stack.sql(query)) for what, query in PENDING.items()}
        left = tuple(f"{count} {what}" for what, count in counts.items() if count)
        total = sum(counts.values())
        if least is None or total < least:
            least, deadline = total, time.monotonic() + patience
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.5)


def rows(stack, select: str) -> list[dict]:
    text = stack.sql(f"SELECT row_to_json(t) FROM ({select}) t", timeout=120)
    return [json.loads(line) for line in text.splitlines()]


def take_tables(stack, run: Run) -> None:
    run.decisions = [Decision(**row) for row in rows(stack, """
        SELECT d.notification, d.step, coalesce(e.id, d.event::text) AS event, coalesce(e.app, '') AS app, d.rule,
            d.user_id AS user, d.answer, d.reason, extract(epoch FROM d.decided_at) AS at
        FROM rules.decision d LEFT JOIN rules.event e ON e.key = d.event""")]
    run.outcomes = [Outcome(**row) for row in rows(
        stack, "SELECT notification, device, disposition, reason FROM rules.outcome")]
    run.events = [row["id"] for row in rows(stack, "SELECT id FROM rules.event")]
    run.held = [row["notification"] for row in rows(stack, "SELECT notification FROM rules.held")]
    run.gathered = [row["notification"] for row in rows(stack, "SELECT notification FROM rules.digest_item")]
    run.inbox = [(row["notification"], row["user_id"], row["saying"]) for row in rows(
        stack, "SELECT notification, user_id, saying FROM rules.inbox")]
    run.summaries = [(row["user_id"], int(row["body"].split()[0])) for row in rows(stack, """
        SELECT i.user_id, s.content->>'body' AS body FROM rules.inbox i JOIN rules.saying s ON s.id = i.saying
        WHERE s.rule = 'gathered'""")]
    run.charges = [
        Charge(row["app"], row["user_id"], cap, [time / 1000 for time in times])
        for row in rows(stack, "SELECT app, user_id, logs FROM rules.person WHERE logs <> '{}'")
        for cap, times in row["logs"].items()]
    run.registrations = [Registration(**row) for row in rows(stack, """
        SELECT device_id AS device, app, user_id AS user, state, extract(epoch FROM registered_at) AS at
        FROM registry.registration""")]
    erased = {one.user for one in run.operations if one.kind == "erased" and one.result == "ok"}
    for table in TABLES_OF_PEOPLE:
        users = {row["user_id"] for row in rows(stack, f"SELECT DISTINCT user_id FROM rules.{table}")}
        run.remains += [(f"rules.{table}", user) for user in sorted(users & erased)]
    run.remains += [("registry.registration", one.user) for one in run.registrations
                    if one.user in erased and one.state != "erased"]


def take_dead_letters(stack, run: Run) -> None:
    for row in stack.queues("name", "messages"):
        if row["name"].endswith(".dead") and row["messages"]:
            for properties, body in stack.take(row["name"]):
                headers = properties.headers or {}
                # The broker's own reason is for a message that was returned too often.
                reason = headers.get("heliograph-reason") or headers.get("x-first-death-reason", "")
                run.dead.append(DeadLetter(row["name"], str(reason), body.decode(errors="replace")))


def find_leaks(folder: pathlib.Path, secrets: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The log files that contain a secret: file and kind. Each line is split into words once."""
    found = set()
    kinds = {secret: kind for kind, members in secrets.items() for secret in members if secret}
    # A word that ends in punctuation is looked up without it.
    words = re.compile(r"[A-Za-z0-9+/_.\-]{8,}=*")
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        with path.open(errors="replace") as log:
            for line in log:
                for word in words.findall(line):
                    for one in (word, word.strip(".-"), *word.split(".")):
                        if one in kinds:
                            found.add((path.name, kinds[one]))
    return sorted(found)
