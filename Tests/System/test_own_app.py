"""The page "Your own app", command by command, and apps that are added to running services."""

import pathlib
import subprocess
import uuid

import pytest

from conftest import ROOT
from local_stack import SERVICES, cloud_event, eventually
from pages import Reader, steps

PAGE = ROOT / "deploy" / "operations" / "your-own-app.md"


def is_repeatable(commands: str) -> bool:
    """Whether a block may be repeated until its answer is there: it reads, or publishes with a new id each time."""
    return commands.startswith(("pushctl explain", 'curl -fsS "$SIMULATOR_URL', 'jq --arg id "message-$RANDOM"'))


def pids(stack) -> dict[str, str]:
    return {service: stack.service("pid", service) for service in SERVICES}


@pytest.fixture(scope="module")
def reader(stack, tmp_path_factory):
    return Reader(stack.environment, tmp_path_factory.mktemp("home"), stack.state)


def test_every_command_of_the_page_works_and_prints_what_the_page_says(stack, reader):
    before = pids(stack)
    blocks = steps(PAGE.read_text())
    assert len(blocks) >= 10
    for commands, expected in blocks:
        output = []

        def prints():
            output[:] = [reader.run(commands)]
            return all(line in output[0] for line in expected)

        if is_repeatable(commands):
            eventually(prints, 60, f"the output {expected} of {commands}")
        else:
            assert prints(), f"{expected} of {commands}: {output[0][-3000:]}"
    assert pids(stack) == before, "a service restarted"
    topic = "com.example.my-app"
    sent = [request for request in stack.requests("apns") if request["headers"].get("apns-topic") == topic]
    assert len(sent) >= 3 and all(request["status"] == 200 for request in sent)


def new_folder(stack, folder: pathlib.Path, name: str) -> pathlib.Path:
    code, output = stack.pushctl("app", "new", name, "--folder", str(folder / name), "--simulated")
    assert code == 0, output
    return folder / name


def up(stack, folder: pathlib.Path) -> str:
    done = subprocess.run(
        [ROOT / "deploy" / "local" / "up", "--detach", "--apps", folder],
        env={**stack.environment, "LOCAL_SKIP_BUILD": "yes"}, stdin=subprocess.DEVNULL, text=True, timeout=180,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


FOLLOWERS = ["rules", "token-registry", "apns-sender", "fcm-sender"]


def problem(stack, service: str) -> str:
    """The reason for which a service's apps file is not fully in use. The service must be ready."""
    status, report = stack.http("GET", f"http://127.0.0.1:{stack.admin_port(service)}/health/ready")
    assert status == 200 and report["ready"], report
    return next(one.get("reason", "") for one in report["conditions"] if one["name"] == "apps")


def message_to(stack, app: str, *users: str, text: str) -> None:
    event = {"message": {"id": "m", "text": text}, "sender": {"id": "pat", "name": "Pat"}, "recipients": list(users)}
    stack.publish(
        f"{app}.message.sent", cloud_event("message.sent", event, f"own-{uuid.uuid4()}"),
        content_type="application/cloudevents+json")


def test_a_broken_apps_file_and_a_missing_queue_are_reported_and_harm_nobody(stack, tmp_path, phones):
    apps = pathlib.Path(stack.env["HELIOGRAPH_APPS"])
    former = apps.read_text()
    name = f"late-{uuid.uuid4().hex[:6]}"
    try:
        apps.write_text(former + "  broken: { apsn: {} }\n")
        for service in FOLLOWERS:
            eventually(lambda: "unknown key" in problem(stack, service), 30, f"{service}'s refusal")
        # Without its queues, an app is not served, and says which command is missing.
        apps.write_text(former + f"  {name}:\n")
        for service in FOLLOWERS:
            eventually(lambda: "pushctl topology apply" in problem(stack, service), 30, f"{service}'s waiting")
        user = f"u-{uuid.uuid4().hex[:8]}"
        phones("family-portal", user, uuid.uuid4().hex * 2)
        data = {
            "message": {"id": 1, "text": "still served", "thread_id": None}, "sender": {"id": "pat", "name": "Pat"},
            "participants": [user]}
        stack.publish(
            "family-portal.chat.message.created", cloud_event("chat.message.created", data, f"own-{uuid.uuid4()}"),
            content_type="application/cloudevents+json")
        eventually(lambda: "still served" in str(stack.requests("apns")), 30, "a push of another app")
    finally:
        apps.write_text(former)
    for service in FOLLOWERS:
        eventually(lambda: not problem(stack, service), 30, f"{service}'s recovery")


def test_two_apps_are_added_without_a_restart_and_are_apart(stack, tmp_path):
    before = pids(stack)
    names = [f"{word}-{uuid.uuid4().hex[:6]}" for word in ("first", "second")]
    for name in names:
        assert f"serving {name}" in up(stack, new_folder(stack, tmp_path, name))
    stack.forget_requests()
    for name in names:
        status, answer = stack.register(name, "sam", uuid.uuid4().hex * 2)
        assert (status, answer["success"]) == (200, True)
        message_to(stack, name, "sam", text=f"for {name}")

    def received():
        requests = stack.requests("apns")
        return {one["headers"]["apns-topic"]: one["body"]["aps"]["alert"]["body"] for one in requests}

    wanted = {f"com.example.{name}": f"for {name}" for name in names}
    eventually(lambda: received() == wanted, 60, f"the pushes {wanted}")
    assert pids(stack) == before
    assert "family-portal" in pathlib.Path(stack.env["HELIOGRAPH_APPS"]).read_text()


def test_a_folder_with_a_mistake_is_refused_and_the_running_stack_stays(stack, tmp_path):
    folder = new_folder(stack, tmp_path, f"bad-{uuid.uuid4().hex[:6]}")
    (folder / "credentials" / "apns.p8").write_text("nonsense")
    done = subprocess.run(
        [ROOT / "deploy" / "local" / "up", "--detach", "--apps", folder],
        env={**stack.environment, "LOCAL_SKIP_BUILD": "yes"}, stdin=subprocess.DEVNULL, text=True, timeout=180,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode != 0 and "apns.p8:1:" in done.stdout and "cannot be used" in done.stdout
    for service in SERVICES[:4]:
        assert stack.service("pid", service)
    # A later start does not try the folder again.
    folders = stack.state / "run" / "app-folders"
    assert not folders.exists() or str(folder) not in folders.read_text()


def test_a_former_folder_with_a_mistake_does_not_prevent_another_app(stack, tmp_path):
    former, later = (f"{word}-{uuid.uuid4().hex[:6]}" for word in ("former", "later"))
    folder = new_folder(stack, tmp_path, former)
    assert f"serving {former}" in up(stack, folder)
    rules = folder / "rules" / f"{former}.yaml"
    text = rules.read_text()
    try:
        rules.write_text(text.replace("sender.name", "sender.nam"))
        output = up(stack, new_folder(stack, tmp_path, later))
        assert f"serving {later}" in output and f"{folder} has mistakes" in output
        assert former in pathlib.Path(stack.env["HELIOGRAPH_APPS"]).read_text()
    finally:
        rules.write_text(text)
    # The folder's own file is in use again.
    assert "has mistakes" not in up(stack, folder)
    assert (stack.state / "rule-files" / f"{former}.yaml").resolve() == rules.resolve()
