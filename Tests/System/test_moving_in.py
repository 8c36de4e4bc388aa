"""Exports of other push services: each is imported, and its phones get the push of an event."""

import csv
import json
import os
import re
import subprocess
import uuid

import pytest

from local_stack import ROOT, cloud_event, eventually

APP, TYPE = "family-portal", "chat.message.created"
PAGES = ROOT / "deploy" / "operations" / "moving-in"


class Sample:
    """The phones of one export: an iPhone and an Android phone, of two users."""

    def __init__(self):
        run = uuid.uuid4().hex
        self.iphone, self.android = run * 2, f"{run}:APA91b"
        self.anna, self.ben = f"anna-{run[:8]}", f"ben-{run[:8]}"


def onesignal(sample: Sample, path) -> list[str]:
    columns = ["id", "identifier", "session_count", "language", "timezone", "game_version", "device_os", "device_type",
               "device_model", "tags", "last_active", "created_at", "invalid_identifier", "external_user_id"]
    common = {"language": "de", "game_version": "4.2", "tags": '{"plan": "pro"}', "last_active": "1767323045"}
    rows = [
        {"identifier": sample.iphone, "device_type": 0, "external_user_id": sample.anna, "invalid_identifier": "f"},
        {"identifier": sample.android, "device_type": 1, "external_user_id": sample.ben, "invalid_identifier": "f"},
        {"identifier": "unsubscribed", "device_type": 1, "external_user_id": sample.ben, "invalid_identifier": "t"},
        {"identifier": "anonymous", "device_type": 1, "external_user_id": "", "invalid_identifier": "f"},
        {"identifier": "a@example.com", "device_type": 11, "external_user_id": sample.ben, "invalid_identifier": "f"},
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows([{**common, **row} for row in rows])
    return ["unsubscribed in OneSignal", "user is missing: external_user_id is empty", "device_type is e-mail"]


def table(sample: Sample, path) -> list[str]:
    path.write_text(
        "user_id,fcm_token,os,updated_at,mail\n"
        f"{sample.ben},{sample.android},Android,2026-01-02 03:04:05,b@example.com\n"
        f",{sample.android},Android,2026-01-02 03:04:05,\n")
    return ["user is missing"]


def gorush(sample: Sample, path) -> list[str]:
    def notification(tokens: list[str], platform: int, user: str | None, **more) -> dict:
        return {"tokens": tokens, "platform": platform, "message": "Hi", "data": {"user_id": user}, **more}

    path.write_text(
        json.dumps({"notifications": [notification([sample.iphone], 1, sample.anna, production=True, topic="com.example")]})
        + "\n" + json.dumps({"notifications": [notification([sample.android], 2, sample.ben)]}, indent=2)
        + "\n" + json.dumps({"notifications": [notification(["x"], 3, sample.ben), notification(["y"], 2, None)]}))
    return ["platform is 3 (Huawei)", "user is missing: data.user_id"]


def aerogear(sample: Sample, path) -> list[str]:
    def installation(token: str, system: str, alias: str | None, enabled: bool = True) -> dict:
        return {"id": uuid.uuid4().hex, "enabled": enabled, "deviceToken": token, "deviceType": None, "osVersion": "17",
                "operatingSystem": system, "alias": alias, "categories": [{"name": "sport"}], "platform": None}

    path.write_text(json.dumps([
        installation(sample.iphone, "iOS", sample.anna), installation(sample.android, "android", sample.ben),
        installation("disabled", "android", sample.ben, enabled=False), installation("nobody", "android", None)]))
    return ["disabled in AeroGear", "user is missing: the installation has no alias"]


def novu(sample: Sample, path) -> list[str]:
    """Writes what the command of the page makes of two subscribers."""

    def subscriber(user: str, *channels: dict) -> dict:
        return {"subscriberId": user, "firstName": "Pat", "channels": list(channels)}

    folder = path.parent
    (folder / "subscribers.json").write_text("\n".join(map(json.dumps, [
        {"data": subscriber(sample.anna, {"providerId": "apns", "credentials": {"deviceTokens": [sample.iphone]}})},
        {"data": subscriber(
            sample.ben, {"providerId": "fcm", "credentials": {"deviceTokens": [sample.android]}},
            {"providerId": "expo", "credentials": {"deviceTokens": ["ExponentPushToken[x]"]}},
            {"providerId": "discord", "credentials": {"webhookUrl": "https://discord.example/x"}})},
        {"data": {"subscriberId": "without", "channels": None}},
    ])))
    command = re.search(r"^    (jq -c .*?)^    pushctl", (PAGES / "novu.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    subprocess.run(["bash", "-euc", command], cwd=folder, check=True, timeout=60)
    path.write_bytes((folder / "devices.ndjson").read_bytes())
    return []


APNS = ["--environment", "production"]
EXPORTS = {
    "onesignal": (onesignal, ["--format", "onesignal", *APNS]),
    "firebase-csv": (table, ["--format", "firebase-csv", "--columns",
                             "user=user_id,token=fcm_token,platform=os,registered_at=updated_at"]),
    "gorush": (gorush, ["--format", "gorush", "--user-member", "data.user_id"]),
    "aerogear": (aerogear, ["--format", "aerogear", *APNS]),
    "novu": (novu, ["--format", "ndjson", *APNS]),
}


def chat(stack, event: str, *readers: str) -> None:
    data = {
        "message": {"id": 1, "text": event, "thread_id": None}, "sender": {"id": "writer", "name": "Pat"},
        "participants": ["writer", *readers],
    }
    stack.publish(f"{APP}.{TYPE}", cloud_event(TYPE, data, event), content_type="application/cloudevents+json")


def apns_tokens(stack, event: str) -> list[str]:
    return [request["token"] for request in stack.requests("apns") if event in json.dumps(request["body"])]


def fcm_tokens(stack, event: str) -> list[str]:
    messages = [request["body"]["message"] for request in stack.requests("fcm")]
    return [message["token"] for message in messages if event in json.dumps(message)]


@pytest.mark.parametrize("name", EXPORTS)
def test_phones_of_an_export_get_the_push_of_an_event(stack, phones, tmp_path, name):
    sample, file = Sample(), tmp_path / "export"
    write, options = EXPORTS[name]
    reasons = write(sample, file)
    variables = ("DATABASE_URL", "HELIOGRAPH_APPS", "REGISTRY_TOKEN_KEYS_FILE")
    command = [stack.product("pushctl"), "devices", "import", str(file), "--app", APP, *options]
    environment = {**os.environ, **{variable: stack.env[variable] for variable in variables}}

    for extra in (["--dry-run", "--report", str(tmp_path / "dry")], []):
        done = subprocess.run([*command, *extra], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == (1 if reasons else 0), done.stderr
        assert all(f"1  {reason}" in done.stdout for reason in reasons), done.stdout
        assert sample.iphone not in done.stdout + done.stderr and sample.android not in done.stdout + done.stderr
    if reasons:
        report = (tmp_path / "export.refused.ndjson").read_text()
        assert len(report.splitlines()) == len(reasons)
        assert sample.iphone not in report and sample.android not in report

    event = f"moved-{uuid.uuid4()}"
    chat(stack, event, sample.anna, sample.ben)
    iphones = [] if name == "firebase-csv" else [sample.iphone]
    eventually(lambda: fcm_tokens(stack, event) == [sample.android], what="the push to the Android phone")
    eventually(lambda: apns_tokens(stack, event) == iphones, what="the push to the iPhone")


REQUEST = re.compile(r"""\$EVENTS_API_URL(/v1/\w+)"[^']*(?:'([\w-]+: \S+)'[^']*)?'(\{.*?\})'""", re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "gorush.md", "novu.md", "onesignal.md", "aerogear.md"])
def test_requests_of_the_page_are_accepted(stack, page):
    requests = REQUEST.findall((PAGES / page).read_text())
    assert requests
    for path, header, body in requests:
        data = json.loads(body)
        # The next step needs events-api.
        if "EVENTS_API_URL" not in stack.env:
            continue
        key = subprocess.run(
            [stack.product("pushctl"), "keys", "create", "--service", "rules", "--name", "moving in", "--app", APP,
             "--may", "events:publish", "--may", "notifications:send"],
            env={**os.environ, **stack.env}, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        headers |= dict([header.split(": ")]) if header else {}
        status, answer = stack.http(
            "POST", f"{stack.env['EVENTS_API_URL']}{path}", headers=headers, raw=json.dumps(data).encode())
        assert status == 202, answer
