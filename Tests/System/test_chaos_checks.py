"""The checks of the chaos bench, each with a history that it accepts and histories that it rejects."""

import dataclasses
import gzip
import json
import os
import pathlib
import subprocess
import sys

import pytest

LIB = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "local" / "lib"
sys.path.insert(0, str(LIB))

from chaos_checks import (  # noqa: E402
    CHECKS, census, delay, late, lost, recovery, repeats, resources, secrets, signals, twice, wrong_person,
)
from chaos_faults import FAULTS  # noqa: E402
from chaos_history import (  # noqa: E402
    CensusLoss, Charge, DeadLetter, Decision, FaultSpan, Operation, Outcome, Registration, Request, Run, Sample, device_id,
)
from chaos_history_reader import read_run  # noqa: E402
from chaos_mutants import FOLDER, MUTANTS  # noqa: E402

APP, TOKEN = "family-portal", "ab" * 32
DEVICE = device_id(APP, "apns", TOKEN)


def published(event="e1", type="note.plain", users=("u1",), at=100.0, **members) -> Operation:
    return Operation("published", "ok", at, at + 0.01, APP, event, type, users, **members)


def phone(kind="registered", user="u1", at=50.0, result="ok", **members) -> Operation:
    return Operation(kind, result, at, at + 0.01, APP, user=user, provider="apns", token=TOKEN, **members)


def decided(event="e1", rule="plain", user="u1", answer="push", reason="wanted", at=100.1, step=0, n=None) -> Decision:
    return Decision(n or f"n-{event}-{user}", step, event, APP, rule, user, answer, reason, at)


def accepted(event="e1", rule="plain", at=100.2, status=200) -> Request:
    return Request("apns", TOKEN, event, rule, at, status, status == 200)


def span(name="rules-killed", began=200.0, ended=205.0, recovered=210.0, **members) -> FaultSpan:
    return FaultSpan(name, began, ended, recovered, **members)


def delivered(**members) -> Run:
    """One event that was published, decided, sent and accepted, to a user who keeps a phone."""
    run = Run(
        operations=[phone(), published(steady=True)], events=["e1"], decisions=[decided()],
        outcomes=[Outcome("n-e1-u1", DEVICE, "accepted")], requests=[accepted()],
        registrations=[Registration(DEVICE, APP, "u1", "active", 50)])
    return dataclasses.replace(run, **members)


def violations(check, run: Run) -> list[str]:
    return check(run).violations


# I1


def test_lost_accepts_a_delivered_event():
    assert violations(lost.check, delivered()) == []


@pytest.mark.parametrize("answer,reason,members", [
    ("inbox", "capped", {}), ("drop", "repeated", {}), ("hold", "quiet-hours", {"held": ["n-e1-u1"]}),
    ("digest", "gathered", {"gathered": ["n-e1-u1"]}), ("digest", "summed-up", {}),
])
def test_lost_accepts_every_end(answer, reason, members):
    run = delivered(decisions=[decided(answer=answer, reason=reason)], outcomes=[], requests=[], **members)
    assert violations(lost.check, run) == []


@pytest.mark.parametrize("members", [
    {"events": [], "decisions": [], "outcomes": [], "requests": []},  # neither stored nor a dead letter
    {"decisions": [], "outcomes": [], "requests": []},  # no decision
    {"outcomes": [], "requests": []},  # a push without an outcome
    {"requests": []},  # an acceptance that the provider does not know
    {"decisions": [decided(answer="hold", reason="quiet-hours")], "outcomes": [], "requests": []},  # held nowhere
    {"decisions": [decided(answer="digest", reason="gathered")], "outcomes": [], "requests": []},  # in no digest
    {"outcomes": [Outcome("n-e1-u1", None, "skipped", "no-device")], "requests": []},  # a phone is registered
    {"tapped": [Outcome("n-e1-u1", DEVICE, "expired")]},  # an outcome on the bus that is not stored
    {"registrations": []}, {"registrations": [Registration(DEVICE, APP, "u1", "invalidated", 50)]},
    {"registrations": [Registration(DEVICE, APP, "u2", "active", 50)]},
    {"remains": [("rules.inbox", "u1")]}, {"undrained": ("1 fan-outs",)},
    {"dead": [DeadLetter("rules.outcomes.dead", "", "{}")]},
])
def test_lost_rejects(members):
    assert len(violations(lost.check, delivered(**members))) == 1


def test_lost_accepts_dead_letters_and_expired_events():
    letter = DeadLetter(f"rules.events.app.{APP}.dead", "missing-field", '{"id": "e1"}')
    run = delivered(events=[], decisions=[], outcomes=[], requests=[], dead=[letter])
    assert violations(lost.check, run) == []
    run = delivered(
        operations=[phone(), published(expires=100.5)], events=[], decisions=[], outcomes=[], requests=[],
        discards={"expired": 1})
    assert violations(lost.check, run) == []
    assert len(violations(lost.check, dataclasses.replace(run, discards={}))) == 1


def test_lost_rejects_an_expiring_event_that_had_time():
    run = delivered(operations=[phone(), published(expires=110)], events=[], decisions=[], outcomes=[], requests=[],
                    discards={"expired": 1})
    assert len(violations(lost.check, run)) == 1
    assert violations(lost.check, dataclasses.replace(run, faults=[span(began=99, ended=105, recovered=108)])) == []


def test_lost_ignores_unconfirmed_events():
    event = published()
    event.result = "unknown"
    assert violations(lost.check, Run(operations=[event])) == []


def test_lost_accepts_a_refused_token_and_rejects_a_missed_campaign():
    gone = Registration(DEVICE, APP, "u1", "invalidated", 50)
    run = delivered(registrations=[gone], requests=[accepted(), accepted("e0", at=90, status=410)])
    assert violations(lost.check, run) == []
    campaign = published("c1", "campaign.started", ())
    run = delivered(operations=[phone(), published(steady=True), campaign], events=["e1", "c1"])
    assert len(violations(lost.check, run)) == 1
    run.requests.append(accepted("c1", "campaign"))
    assert violations(lost.check, run) == []


# I2


def test_repeats_accepts_an_extra_push_of_a_fault_that_allows_it():
    run = Run(requests=[accepted(at=204), accepted(at=208)], faults=[span(extra_pushes=1)])
    assert violations(repeats.check, run) == []


@pytest.mark.parametrize("requests,extra_pushes", [
    ([accepted(at=204), accepted(at=208)], 0),
    ([accepted(at=100), accepted(at=150)], 5),  # outside of the fault
    ([accepted(rule="once", at=204), accepted(rule="once", at=208)], 5),
    ([accepted(event, at=at) for event in ("e1", "e2") for at in (204, 206)], 1),  # above the bound
])
def test_repeats_rejects(requests, extra_pushes):
    run = Run(requests=requests, faults=[span(extra_pushes=extra_pushes)])
    assert violations(repeats.check, run)


# I3


def capped(*times: float, refused: tuple = (), charges: tuple | None = None) -> Run:
    decisions = [decided(f"e{at}", "capped", at=at) for at in times]
    decisions += [decided(f"r{at}", "capped", answer="inbox", reason="capped", at=at) for at in refused]
    return Run(decisions=decisions, charges=[Charge(APP, "u1", "few", list(charges or times))])


def test_twice_accepts_caps_digests_and_inbox():
    assert violations(twice.check, capped(100, 101, 102, refused=(103,))) == []
    run = Run(decisions=[decided(rule="gathered", answer="digest", reason="summed-up")], summaries=[("u1", 1)],
              inbox=[("n1", "u1", "s1"), ("n2", "u1", "s2")], events=["e1", "e2"])
    assert violations(twice.check, run) == []


@pytest.mark.parametrize("run", [
    capped(100, 101, 102, 103),  # over the cap
    capped(100, 101, charges=(100, 101, 101)),  # charged twice
    capped(100, 101, charges=(100,)),  # not charged
    capped(100, refused=(101,)),  # refused too early
    Run(events=["e1", "e1"]),
    Run(outcomes=[Outcome("n1", DEVICE, "accepted"), Outcome("n1", DEVICE, "expired")]),
    Run(decisions=[decided(n="n1", answer="drop"), decided(n="n2", answer="drop")]),
    Run(decisions=[decided(), decided(step=1)]),
    Run(inbox=[("n1", "u1", "s1"), ("n2", "u1", "s1")]),
    Run(decisions=[decided(rule="gathered", answer="digest", reason="summed-up")], summaries=[("u1", 2)]),
])
def test_twice_rejects(run):
    assert violations(twice.check, run)


# I4 to I9


def test_recovery():
    assert violations(recovery.check, Run(faults=[span()])) == []
    assert violations(recovery.check, Run(faults=[span(recovered=None)]))
    assert violations(recovery.check, Run(faults=[span(problem="the end failed")]))


def test_delay():
    def run(bulk: float) -> Run:
        events = [(f"a{n}", n / 10, 0.1) for n in range(60)] + [(f"b{n}", 100 + n / 10, bulk) for n in range(60)]
        return Run(operations=[published(event, at=at, steady=True) for event, at, _ in events],
                   requests=[accepted(event, at=at + wait) for event, at, wait in events],
                   phases={"baseline": (0, 10), "bulk": (100, 110)})

    assert violations(delay.check, run(0.2)) == []
    assert violations(delay.check, run(2))
    assert violations(delay.check, Run())  # no measurement


def test_resources():
    def run(growth: float, descriptors: int) -> Run:
        return Run(samples=[
            Sample("rules", 1, n * 60, 100 + growth * n / 9, 40 + descriptors * n // 9) for n in range(10)])

    assert violations(resources.check, run(10, 2)) == []
    assert violations(resources.check, run(200, 2))
    assert violations(resources.check, run(10, 100))


def test_signals():
    assert violations(signals.check, Run(faults=[span(seen={"VICTIM down": "rules"})])) == []
    assert violations(signals.check, Run(faults=[span(missing=("VICTIM down",))]))


def test_secrets():
    assert violations(secrets.check, Run()) == []
    assert violations(secrets.check, Run(leaks=[("rules.log", "token")]))


def test_late():
    in_time = Run(operations=[published(expires=105)], requests=[accepted(at=104)])
    assert violations(late.check, in_time) == []
    # The machine may suspend the sender after its last look at the clock.
    assert violations(late.check, Run(operations=[published(expires=105)], requests=[accepted(at=105.9)])) == []
    too_late = Run(operations=[published(expires=105)], requests=[accepted(at=106.1)])
    assert violations(late.check, too_late)
    # A frozen sender has looked at its clock before.
    too_late.faults = [span("apns-sender-frozen", 104, 120, 125)]
    assert violations(late.check, too_late) == []


# IC


def missed(**members) -> Run:
    """A message that was taken before apns-sender, and named after 33 s."""
    loss = CensusLoss("e1", "missing-sender", taken=100, found=133, named="missing-sender")
    return Run(census=dataclasses.replace(loss, **members))


def test_census_accepts_a_loss_that_is_named_in_time():
    verdict = census.check(missed())
    assert verdict.holds and verdict.figures == {"state": "missing-sender", "seconds": 33, "others": 0}


@pytest.mark.parametrize("run", [
    Run(),  # nothing was taken
    missed(found=161), missed(named="missing-outcomes"), missed(others=("missing-registry|e2|n2",)),
    missed(found=0, named="", problem="the gap did not hold within 90 s"),
])
def test_census_rejects(run):
    assert len(violations(census.check, run)) == 1


# The stored history


def test_recheck_reads_a_stored_run_and_fails_with_its_violations(tmp_path):
    def recheck(run: Run) -> tuple[int, dict[str, float]]:
        path = tmp_path / "run.json.gz"
        with gzip.open(path, "wt") as file:
            json.dump(dataclasses.asdict(run), file)
        assert read_run(path) == run
        done = subprocess.run(
            [sys.executable, LIB.parent / "benches" / "chaos.py", "--state", tmp_path / "state", "--recheck", path],
            env=dict(os.environ, PYTHONPATH=str(LIB)), capture_output=True, text=True, timeout=60)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, {row["figure"].partition(":")[0]: row["value"] for row in rows}

    times = [(f"{phase}{number}", start + number / 10) for phase, start in (("a", 300), ("b", 400)) for number in range(60)]
    run = delivered(census=missed().census, faults=[span()], phases={"baseline": (300, 310), "bulk": (400, 410)})
    run.requests += [accepted(event, at=at + 0.1) for event, at in times]
    run.operations += [published(event, at=at, steady=True) for event, at in times]
    run.events += [event for event, _ in times]
    run.decisions += [decided(event, at=at + 0.05) for event, at in times]
    run.outcomes += [Outcome(f"n-{event}-u1", DEVICE, "accepted") for event, _ in times]
    assert recheck(run) == (0, dict.fromkeys(CHECKS, 0))
    run.census.found = 161
    assert recheck(run) == (1, dict.fromkeys(CHECKS, 0) | {"IC": 1})


# IP


def taken_over(at: float, *faults: FaultSpan) -> Run:
    """u2 takes the phone of u1 over at 120; a push to u1 is accepted later."""
    operations = [phone(), published(), phone(user="u2", at=120)]
    return Run(operations=operations, requests=[accepted(at=at)], faults=list(faults))


def test_wrong_person_accepts_the_time_of_a_revocation():
    assert violations(wrong_person.check, taken_over(121)) == []
    # The registry could not announce the takeover before its recovery.
    assert violations(wrong_person.check, taken_over(128, span("token-registry-killed", 119, 125, 127))) == []


def test_wrong_person_rejects_a_push_after_the_revocation():
    assert violations(wrong_person.check, taken_over(130))
    assert violations(wrong_person.check, taken_over(140, span("token-registry-killed", 119, 125, 127)))
    # A stopped sender reads the revocations before its first push.
    assert violations(wrong_person.check, taken_over(128, span("apns-sender-stopped", 119, 127, 128)))
    left = Run(operations=[phone(), published(), phone("signed-out", at=120)], requests=[accepted(at=130)])
    assert violations(wrong_person.check, left)


@pytest.mark.parametrize("kind", ["signed-out", "erased"])
def test_wrong_person_rejects_a_campaign_to_a_phone_without_a_user(kind):
    def run(*operations: Operation, at: float = 130) -> Run:
        return Run(operations=[phone(), published("c1", "campaign.started", ()), phone(kind, at=120), *operations],
                   requests=[accepted("c1", "campaign", at)])

    assert len(violations(wrong_person.check, run())) == 1
    assert violations(wrong_person.check, run(at=119)) == violations(wrong_person.check, run(at=121)) == []
    # The next user of the phone gets the campaign.
    assert violations(wrong_person.check, run(phone(user="u2", at=125))) == []


def test_wrong_person_accepts_a_user_who_returned():
    run = taken_over(130)
    run.operations.append(phone(at=125))
    assert violations(wrong_person.check, run) == []


def test_wrong_person_rejects_a_push_to_a_user_who_has_switched_it_off():
    off = phone("preferred", at=90, wants=False)
    assert len(violations(wrong_person.check, Run(operations=[off], decisions=[decided()]))) == 1
    assert len(violations(wrong_person.check, Run(operations=[off, published()], requests=[accepted()]))) == 1
    on = phone("preferred", at=95, wants=True)
    assert violations(wrong_person.check, Run(operations=[off, on], decisions=[decided()])) == []


def test_wrong_person_accepts_a_decision_that_may_have_read_the_next_choice():
    choices = [phone("preferred", at=90, wants=False), phone("preferred", at=100.4, wants=True)]
    run = Run(operations=[*choices, published()], decisions=[decided(at=100.1)], requests=[accepted(at=100.6)])
    assert violations(wrong_person.check, run) == []
    # The push arrived before the user switched pushes on again.
    run.requests = [accepted(at=100.3)]
    assert violations(wrong_person.check, run)
    # The push did not arrive: the decision took at most five seconds.
    run = Run(operations=[choices[0], phone("preferred", at=106, wants=True), published()], decisions=[decided()])
    assert len(violations(wrong_person.check, run)) == 1


# The planted bugs


def test_each_planted_bug_has_a_patch_an_invariant_and_faults():
    assert {path.stem for path in FOLDER.glob("*.patch")} == set(MUTANTS)
    assert len(MUTANTS) >= 10
    names = {fault.name for fault in FAULTS} | {"none"}
    for name, mutant in MUTANTS.items():
        assert mutant.invariant in CHECKS, name
        assert set(mutant.faults.split(",")) <= names, name


@pytest.mark.parametrize("name", MUTANTS)
def test_each_planted_bug_applies_to_the_sources(name):
    done = subprocess.run(
        ["patch", "-d", LIB.parents[2], "-p1", "--dry-run", "--batch", "-i", FOLDER / f"{name}.patch"],
        capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stdout + done.stderr
