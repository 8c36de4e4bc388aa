"""A Prometheus for a local stack, with the rules of deploy/monitoring. Uses only Python's own modules."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy" / "monitoring" / "rules.yaml"
# The offset of each service's admin port from the base (deploy/local/lib/common.sh).
ADMIN_PORTS = {
    "rules": 10, "token-registry": 11, "apns-sender": 12, "fcm-sender": 13, "feedback": 14, "events-api": 22, "webhook-sender": 23,
    "webpush-sender": 28,
}


def configuration(port_base: int, broker_port: int, rules: pathlib.Path, interval: str = "15s") -> str:
    """The configuration of Prometheus, as JSON, which is YAML. Jobs and labels are those of deploy/monitoring."""
    targets = [
        {"targets": [f"127.0.0.1:{port_base + offset}"], "labels": {"service": service}}
        for service, offset in ADMIN_PORTS.items()
    ]
    return json.dumps({
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "heliograph", "static_configs": targets},
            {"job_name": "rabbitmq", "metrics_path": "/metrics/detailed",
             "params": {"vhost": ["heliograph"], "family": ["queue_coarse_metrics", "queue_consumer_count"]},
             "static_configs": [{"targets": [f"127.0.0.1:{broker_port}"]}]},
        ],
    }, indent=1)


def hasty(rules: str) -> str:
    """The rules for tests: waits (`for`) of a second, windows and offsets of 10 s or 30 s, and a queue length of ten for a
    thousand. All other thresholds and the conditions stay.
    """
    text = re.sub(r"\bfor: \d+[mh]\b", "for: 1s", rules)
    text = re.sub(r"\[(5m|10m|15m)\]", "[10s]", text)
    text = re.sub(r"\[(30m|1h|6h)\]", "[30s]", text)
    text = re.sub(r"\boffset \d+m\b", "offset 10s", text)
    return text.replace("max > 1000 and", "max > 10 and")


def turn_plugin(state: pathlib.Path, port: int | None, plugin: str = "rabbitmq_prometheus") -> None:
    """Turns one of the broker's plugins with an HTTP API on, on a port, and all others off; or all off. A start of the
    broker writes its list of plugins anew, so that a restart turns the plugin off.
    """
    plugins = state / "rabbitmq" / "enabled_plugins"
    plugins.write_text(f"[{plugin if port else ''}].\n")
    # A newer broker loads the plugin after this, which would bring its own settings back if this were not persistent.
    listener = f'[{{port, {port}}}, {{ip, "127.0.0.1"}}]'
    setting = f"ok = application:set_env({plugin}, tcp_config, {listener}, [{{persistent, true}}]), "
    code = (setting if port else "") + f'rabbit_plugins:ensure("{plugins}").'
    done = subprocess.run(
        [state / "rabbitmqctl", "eval", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    if done.returncode != 0 or "{ok," not in done.stdout:
        raise RuntimeError(f"rabbitmqctl eval: {done.stdout}{done.stderr}")


class Prometheus:
    """A running Prometheus."""

    def __init__(self, folder: pathlib.Path, port: int):
        self.folder, self.port = folder, port
        self.address = f"http://127.0.0.1:{port}"

    def command(self) -> list[str]:
        return [
            "prometheus", f"--config.file={self.folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self.folder / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]

    @contextlib.contextmanager
    def running(self):
        """Runs Prometheus until the end of the block."""
        with open(self.folder / "log", "w") as log:
            process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                deadline = time.monotonic() + 60
                while not self.is_ready():
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"Prometheus did not start:\n{(self.folder / 'log').read_text()}")
                    time.sleep(0.1)
                yield self
            finally:
                process.terminate()
                process.wait(30)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def get(self, path: str, **parameters: str) -> dict:
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            return json.load(refusal)

    def query(self, text: str) -> list[dict]:
        """The series that a query returns now."""
        answer = self.get("query", query=text)
        assert answer["status"] == "success", f"{text}: {answer}"
        return answer["data"]["result"]

    def firing(self) -> list[dict[str, str]]:
        """The labels of the alerts that fire now."""
        return [alert["labels"] for alert in self.get("alerts")["data"]["alerts"] if alert["state"] == "firing"]


def main() -> None:
    state = pathlib.Path(os.environ.get("LOCAL_STATE", ROOT / ".local"))
    started = state / "run" / "port-base"
    if not started.is_file():
        raise SystemExit(f"error: there is no stack in {state} — start one with deploy/local/up --detach")
    if not shutil.which("prometheus"):
        raise SystemExit("error: Prometheus is missing — as root, run: apt-get install prometheus")
    port = int(os.environ.get("LOCAL_PROMETHEUS_PORT", "9090"))
    turn_plugin(state, port + 1)
    prometheus = Prometheus(state / "prometheus", port)
    prometheus.folder.mkdir(exist_ok=True)
    text = configuration(int(started.read_text()), port + 1, RULES, "5s")
    (prometheus.folder / "prometheus.yaml").write_text(text)
    print(f"Prometheus of the stack in {state}: {prometheus.address}/alerts; Ctrl-C stops it", flush=True)
    os.execvp("prometheus", prometheus.command())


if __name__ == "__main__":
    main()
