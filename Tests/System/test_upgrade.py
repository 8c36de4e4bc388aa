"""Two releases side by side: an upgrade service by service under load, and the way back, lose and repeat no push.

`deploy/local/test --earlier REF` builds the earlier release, and sets LOCAL_EARLIER_BUILD to the folder of its
executables, which is `.build/debug` in a checkout.
"""

import os
import pathlib

import pytest

from conftest import further_stack, phones_of
from upstream import ChatEvents, publish_surely

EARLIER = os.environ.get("LOCAL_EARLIER_BUILD")
# The order of deploy/operations/upgrade.md. Events wait in the broker while the last one restarts.
ORDER = ["apns-sender", "fcm-sender", "feedback", "token-registry", "rules", "events-api"]
EVENTS = 600

pytestmark = pytest.mark.skipif(not EARLIER, reason="run deploy/local/test --earlier REF to test an upgrade from REF")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A stack with the schema and topology of this release, and the services of the earlier one."""
    with further_stack(tmp_path_factory.mktemp("mixed")) as stack:
        # An earlier release refuses keys that it does not know.
        apps = pathlib.Path(EARLIER).parents[1] / "deploy" / "local" / "demo" / "apps.yaml"
        (stack.state / "apps.yaml").write_text(apps.read_text().replace("@KEYS@", "credentials"))
        for service in ORDER:
            change(stack, service, earlier=True)
        yield stack


def change(stack, service: str, earlier: bool) -> None:
    """Stops a service, and starts it from the other release."""
    link = stack.state / "executables" / service
    link.parent.mkdir(exist_ok=True)
    stack.service("stop", service)
    if earlier:
        executable = pathlib.Path(EARLIER) / service
        assert executable.is_file(), f"{executable} does not exist"
        link.symlink_to(executable)
    else:
        link.unlink()
    stack.service("start", service)
    stack.service("ready", service)


def executable_of(stack, service: str) -> pathlib.Path:
    return pathlib.Path(f"/proc/{stack.service('pid', service)}/exe").resolve()


def run(stack, order: list[str], earlier: bool) -> None:
    """Publishes events all the time, while each service changes its release in turn."""
    events = ChatEvents(stack, phones_of(stack), EVENTS)
    bodies, parts = list(events.bodies.items()), len(order) + 1
    size = -(-len(bodies) // parts)
    for part, service in zip(range(parts), [*order, None]):
        some = dict(bodies[part * size:(part + 1) * size])
        publish_surely(stack, some, lambda: service and change(stack, service, earlier))
    assert events.await_all() == 0, "pushes were repeated"
    for service in order:
        assert executable_of(stack, service).is_relative_to(pathlib.Path(EARLIER).resolve()) == earlier, service
    with stack.channel() as channel:
        for queue in ("rules.events.app.family-portal", "rules.outcomes", "feedback.outcomes", "token-registry.devices"):
            assert channel.queue_declare(f"{queue}.dead", passive=True).method.message_count == 0, queue


def test_an_upgrade_under_load_loses_and_repeats_no_push(mixed):
    assert executable_of(mixed, "rules").is_relative_to(pathlib.Path(EARLIER).resolve())
    run(mixed, ORDER, earlier=False)


def test_the_way_back_loses_and_repeats_no_push(mixed):
    run(mixed, ORDER[::-1], earlier=True)
