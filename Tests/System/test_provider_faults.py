"""Every fault of the simulator in 1 % of the requests: each push still has exactly one outcome.

`deploy/local/bench faults` is the same run with 100,000 pushes.
"""

from fault_run import fault_run

PUSHES = 3000
# Long enough for short retries. A push with a retry delay of fifteen minutes expires.
LIFETIME = 90


def test_every_push_has_one_outcome_despite_provider_faults(stack):
    run = fault_run(stack, PUSHES, LIFETIME)
    assert run["with_several_outcomes"] == 0
    assert run["dead"] == {}
    assert run["wrongly_deactivated"] == {}
    assert run["lanes_open"]
    # The run is meaningful: many faults occurred, and pushes were accepted, rejected and unregistered.
    assert run["kinds_played"]["apns"] > 40 and run["kinds_played"]["fcm"] > 20, run["kinds_played"]
    assert run["dispositions"]["accepted"] > PUSHES / 20
    assert run["dispositions"].get("unregistered", 0) > 0
