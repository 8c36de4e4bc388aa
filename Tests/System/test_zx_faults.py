"""One in a hundred of everything that providers can do wrong: every push ends in exactly one outcome all the same.

`deploy/local/bench faults` is the same run with 100,000 pushes.
"""

from fault_run import fault_run

PUSHES = 3000
# Long enough for the shorter waits; where a provider asks for fifteen minutes, the push expires, which is its outcome.
LIFETIME = 90


def test_every_push_ends_in_one_outcome_whatever_providers_do(stack):
    run = fault_run(stack, PUSHES, LIFETIME)
    assert run["with_several_outcomes"] == 0
    assert run["dead"] == {}
    assert run["wrongly_deactivated"] == {}
    assert run["lanes_open"]
    # The run was one: many faults were met, some pushes got through on either side, and some tokens were lost.
    assert run["kinds_played"]["apns"] > 40 and run["kinds_played"]["fcm"] > 20, run["kinds_played"]
    assert run["dispositions"]["accepted"] > PUSHES / 20
    assert run["dispositions"].get("unregistered", 0) > 0
