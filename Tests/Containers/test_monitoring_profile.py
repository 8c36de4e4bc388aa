"""The compose profile `monitoring`: Prometheus scrapes each process and evaluates the rules, Grafana has the boards."""

import subprocess
import time
import urllib.parse

import pytest
import yaml

import docker
from conftest import request
from waiting import eventually

PROMETHEUS, GRAFANA = "http://127.0.0.1:9090", "http://127.0.0.1:3000"
MONITORING = docker.ROOT / "deploy" / "monitoring"


def image_of(service: str) -> str:
    return yaml.safe_load((docker.ROOT / "docker-compose.yml").read_text())["services"][service]["image"]


def start(demonstration, service: str) -> None:
    demonstration.compose("--profile", "monitoring", "up", "--detach", service)


def stop(demonstration, service: str) -> None:
    docker.podman("stop", "--time", "30", demonstration.name(service))


def query(text: str) -> list[dict]:
    status, answer = request("GET", f"{PROMETHEUS}/api/v1/query?{urllib.parse.urlencode({'query': text})}")
    assert status == 200 and answer["status"] == "success", answer
    return answer["data"]["result"]


def is_ready() -> bool:
    try:
        return request("GET", f"{PROMETHEUS}/-/ready")[0] == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def prometheus(demonstration):
    start(demonstration, "prometheus")
    try:
        eventually(is_ready, 60, "Prometheus")
        yield
    finally:
        stop(demonstration, "prometheus")


def test_prometheus_scrapes_each_process_and_evaluates_each_rule(demonstration, prometheus, report):
    demonstration.wait_for_health()
    configuration = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    targets = {target for job in configuration["scrape_configs"] for group in job["static_configs"]
               for target in group["targets"]}

    def scraped() -> set[str]:
        return {series["metric"]["instance"] for series in query("up == 1")}

    eventually(lambda: scraped() == targets, 120, "all targets")
    rules = [rule for group in request("GET", f"{PROMETHEUS}/api/v1/rules")[1]["data"]["groups"] for rule in group["rules"]]
    written = [rule for group in yaml.safe_load((MONITORING / "rules.yaml").read_text())["groups"] for rule in group["rules"]]
    assert len(rules) == len(written)

    def evaluated() -> bool:
        now = request("GET", f"{PROMETHEUS}/api/v1/rules")[1]["data"]["groups"]
        return all(rule["health"] == "ok" for group in now for rule in group["rules"])

    eventually(evaluated, 120, "the evaluation of all rules")
    # The last scrape may be from a restart of another test.
    eventually(lambda: query('heliograph_ready{service="rules"}')[0]["value"][1] == "1", 60, "rules to be ready")
    assert query('rabbitmq_detailed_queue_messages_ready{queue="rules.outcomes"}')
    report.append(f"prometheus: {len(targets)} targets, {len(rules)} rules")


def test_prometheus_runs_without_rights_and_keeps_its_data(demonstration, prometheus):
    container = demonstration.container("prometheus")
    assert not container.get("EffectiveCaps")
    status = {line.partition(":")[0]: line.partition(":")[2].strip()
              for line in open(f"/proc/{demonstration.pid('prometheus')}/status")}
    assert status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == 0 and set(status["Uid"].split()) != {"0"}
    before = time.time()
    eventually(lambda: query("up"), 60, "a scrape")
    stop(demonstration, "prometheus")
    start(demonstration, "prometheus")

    eventually(is_ready, 60, "Prometheus")
    assert query(f"max(timestamp(up offset {max(1, round(time.time() - before - 1))}s))")


def is_image_here(service: str) -> bool:
    full = f"docker.io/{image_of(service)}"
    return subprocess.run(["podman", "image", "exists", full], stdin=subprocess.DEVNULL, timeout=60).returncode == 0


def test_grafana_has_the_boards(demonstration, prometheus):
    if not is_image_here("grafana"):
        pytest.skip("no registry serves the image of Grafana")
    start(demonstration, "grafana")
    try:
        def boards() -> set[str]:
            try:
                return {one["title"] for one in request("GET", f"{GRAFANA}/api/search?type=dash-db")[1]}
            except OSError:
                return set()

        written = {yaml.safe_load(path.read_text())["title"] for path in (MONITORING / "boards").glob("*.json")}
        eventually(lambda: boards() == written, 120, "the boards")
    finally:
        stop(demonstration, "grafana")
