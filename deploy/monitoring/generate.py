"""Writes the Grafana boards, and the rules of the Kubernetes component `monitoring`.

    python3 deploy/monitoring/generate.py            writes the files
    python3 deploy/monitoring/generate.py --check    exits with 1 if a file differs
"""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
COMPONENT = FOLDER.parent / "kubernetes" / "components" / "monitoring"
# Grafana's limits of a row, and the height of a panel.
COLUMNS, HEIGHT = 24, 8

# A panel: title, unit, description, then pairs of query and legend.
PIPELINE = [
    ("Delay from event to acceptance, 99th percentile", "s",
     "Late? The objective is 5 s for interactive pushes, and 300 s for bulk pushes.",
     ("heliograph:event_to_accepted_seconds:p99_5m", "{{app}} {{lane}}")),
    ("Share of late pushes, one hour", "percentunit", "The error budget is 1 %.",
     ("heliograph:late_pushes:ratio_rate1h", "{{lane}}")),
    ("Messages waiting, by queue", "short", "A queue that grows is the stage to look at.",
     ("topk(12, heliograph:queue_messages_ready:max > 0)", "{{queue}}")),
    ("Age of the message handled last, by queue", "s", "0 while no message is in flight.",
     ("topk(12, max by (queue) (heliograph_queue_age_seconds) > 0)", "{{queue}}")),
    ("Duration of a handler call, 99th percentile", "s", "The slow stage.",
     ("histogram_quantile(0.99, sum by (stage, le) (rate(heliograph_handle_seconds_bucket[5m])))", "{{stage}}")),
    ("Messages consumed", "cps", "",
     ("sum by (stage) (rate(heliograph_messages_consumed_total[5m]))", "{{stage}}")),
    ("Messages settled without success", "cps", "",
     ('sum by (stage, disposition) (rate(heliograph_messages_settled_total{disposition!="done"}[5m]))',
      "{{stage}} {{disposition}}")),
    ("Dead letters in the last hour", "short", "Read them with pushctl dead.",
     ("sum by (stage, reason) (increase(heliograph_messages_dead_lettered_total[1h]))", "{{stage}} {{reason}}")),
    ("Retries by reason", "cps", "",
     ("sum by (stage, reason) (rate(heliograph_messages_retried_total[5m]))", "{{stage}} {{reason}}")),
    ("Dependencies away, and a blocked broker", "short", "1 while it lasts.",
     ("max by (stage) (heliograph_outage)", "{{stage}} holds messages"),
     ("max(heliograph_broker_blocked)", "broker blocked")),
    ("Ready processes", "short", "",
     ("sum by (service) (heliograph_ready)", "{{service}}")),
    ("Conditions that do not hold", "short", "",
     ("sum by (service, condition) (heliograph_ready_condition == bool 0)", "{{service}} {{condition}}")),
    ("Processor time", "short", "Cores in use.",
     ('sum by (service) (rate(process_cpu_seconds_total{job="heliograph"}[5m]))', "{{service}}")),
    ("Resident memory", "bytes", "The largest process of each service.",
     ('max by (service) (process_resident_memory_bytes{job="heliograph"})', "{{service}}")),
]
SENDERS = [
    ("Targets by outcome", "cps", "",
     ("sum by (provider, disposition) (rate(heliograph_push_targets_total[5m]))", "{{provider}} {{disposition}}")),
    ("Refusals by reason", "cps", "",
     ("topk(12, sum by (provider, reason) (rate(heliograph_push_refusals_total[5m])))", "{{provider}} {{reason}}")),
    ("Response time of the provider", "s", "From a request's stream to its response.",
     ("histogram_quantile(0.5, sum by (provider, le) (rate(heliograph_provider_response_seconds_bucket[5m])))",
      "{{provider}} median"),
     ("heliograph:provider_response_seconds:p99_5m", "{{provider}} 99 %")),
    ("Delay from event to acceptance, median", "s", "",
     ("histogram_quantile(0.5, sum by (provider, lane, le) (rate(heliograph_event_to_accepted_seconds_bucket[5m])))",
      "{{provider}} {{lane}}")),
    ("Paused routes", "short", "1 while no process sends on the route.",
     ("max by (provider, app, environment) (heliograph_route_open) == bool 0",
      "{{provider}} {{app}} {{environment}}")),
    ("Waiting for a key in Firebase", "short", "",
     ("max by (app, environment) (heliograph_push_third_party_open) == bool 0", "{{app}} {{environment}}")),
    ("Requests in flight and waiting", "short", "Waiting requests have no stream.",
     ("sum by (provider) (heliograph_push_streams_open)", "{{provider}} in flight"),
     ("sum by (provider) (heliograph_push_requests_waiting)", "{{provider}} waiting")),
    ("Connections", "short", "",
     ("sum by (provider) (heliograph_push_connections)", "{{provider}}"),
     ('sum by (provider) (rate(heliograph_push_connects_total{result="failed"}[5m]))', "{{provider}} failures a second")),
    ("GOAWAY frames and resends", "cps", "",
     ("sum by (provider) (rate(heliograph_push_goaways_total[5m]))", "{{provider}} GOAWAY"),
     ("sum by (provider) (rate(heliograph_push_resends_total[5m]))", "{{provider}} resends")),
    ("Quota of the project", "cps", "Messages a second that the processes may send.",
     ("sum by (project) (heliograph_push_quota_rate)", "{{project}}")),
    ("Days until a certificate expires", "d", "",
     ("min by (app, environment) (heliograph_certificate_expiry_days)", "{{app}} {{environment}}")),
    ("Skipped as revoked", "cps", "",
     ("sum by (provider) (rate(heliograph_push_targets_revoked_total[5m]))", "{{provider}}")),
    ("Age of the revocation stream", "s", "Above 600 s, old pushes are not sent.",
     ("max by (service) (heliograph_stream_age_seconds)", "{{service}}")),
    ("Quarantine and guards", "short", "",
     ("max by (app) (heliograph_feedback_quarantined)", "{{app}} in quarantine"),
     ("max by (provider, app, environment) (heliograph_feedback_guard_tripped)", "guard {{provider}} {{app}}")),
]
REGISTRY_AND_RULES = [
    ("Decisions", "cps", "",
     ("sum by (app, answer) (rate(heliograph_rules_decisions_total[5m]))", "{{app}} {{answer}}")),
    ("Users notified at once and later", "cps", "",
     ("sum by (app, lane) (rate(heliograph_rules_notified_users_total[5m]))", "{{app}} {{lane}}"),
     ("sum by (app) (rate(heliograph_rules_released_users_total[5m]))", "{{app}} released")),
    ("Lateness of due rows", "s", "Held notifications and digests that were due.",
     ("max by (work) (heliograph_rules_due_age_seconds)", "{{work}}")),
    ("Missing notifications", "short", "Of the census. Any is a fault.",
     ('max by (app, state) (heliograph_census{state=~"missing-.*|unexplained"})', "{{app}} {{state}}")),
    ("Waiting notifications", "short", "Of the census.",
     ('max by (state) (heliograph_census{state=~"queued|held|digest|fan-out|on-the-way|at-.*|retrying"})',
      "{{state}}")),
    ("Age of the census", "s", "", ("max(heliograph_census_age_seconds)", "age")),
    ("HTTP requests", "reqps", "",
     ("sum by (service, route) (rate(heliograph_http_server_request_duration_seconds_count[5m]))",
      "{{service}} {{route}}")),
    ("HTTP errors", "reqps", "",
     ("sum by (service, route, status) "
      '(rate(heliograph_http_server_request_duration_seconds_count{status=~"5.."}[5m]))',
      "{{service}} {{route}} {{status}}")),
    ("HTTP response time, 99th percentile", "s", "",
     ("histogram_quantile(0.99, "
      "sum by (service, le) (rate(heliograph_http_server_request_duration_seconds_bucket[5m])))", "{{service}}")),
    ("Database connections in use", "percentunit", "Of the pool's size.",
     ('max by (service) (heliograph_database_connections{state="in-use"} '
      "/ on (service, instance, schema) heliograph_database_pool_size)", "{{service}}")),
    ("Callers that wait for a connection", "short", "",
     ("max by (service) (heliograph_database_callers_waiting)", "{{service}}")),
    ("Dead rows in the last hour", "short", "Read them with pushctl dead-rows.",
     ("sum by (table, reason) (increase(heliograph_rows_dead_lettered_total[1h]))", "{{table}} {{reason}}")),
    ("Registrations", "cps", "",
     ("sum by (app) (rate(heliograph_registry_registrations_total[5m]))", "{{app}} registered"),
     ("sum by (app) (rate(heliograph_registry_deactivations_total[5m]))", "{{app}} deactivated")),
    ("Campaigns", "cps", "Devices in published pushes.",
     ("sum by (app) (rate(heliograph_registry_campaign_devices_total[5m]))", "{{app}}")),
    ("Unpublished device events", "s", "Age of the oldest.",
     ("max(heliograph_registry_events_waiting_seconds)", "oldest")),
    ("Unreadable registrations", "cps", "",
     ("sum by (app) (rate(heliograph_registry_unreadable_registrations_total[5m]))", "{{app}}")),
]


def board(uid: str, title: str, panels: list) -> dict:
    """A board with two panels in each row."""
    return {
        "uid": f"heliograph-{uid}", "title": f"Heliograph: {title}", "tags": ["heliograph"], "schemaVersion": 39,
        "editable": False, "refresh": "30s", "time": {"from": "now-3h", "to": "now"}, "timezone": "browser",
        "panels": [panel(number, *fields) for number, fields in enumerate(panels)],
    }


def panel(number: int, title: str, unit: str, description: str, *queries: tuple[str, str]) -> dict:
    source = {"type": "prometheus", "uid": "prometheus"}
    width = COLUMNS // 2
    return {
        "id": number + 1, "type": "timeseries", "title": title, "description": description, "datasource": source,
        "gridPos": {"x": number % 2 * width, "y": number // 2 * HEIGHT, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(queries)
        ],
    }


BOARDS = {
    "pipeline": board("pipeline", "pipeline", PIPELINE),
    "senders": board("senders", "senders", SENDERS),
    "registry-and-rules": board("registry-and-rules", "registry and rules", REGISTRY_AND_RULES),
}


def prometheus_rule(rules: str) -> str:
    """The rules as an object of the Prometheus operator."""
    groups = rules[rules.index("groups:\n"):]
    body = "".join("  " + line if line.strip() else line for line in groups.splitlines(keepends=True))
    return (
        "# Written by deploy/monitoring/generate.py from deploy/monitoring/rules.yaml.\n"
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: heliograph\n"
        "  labels: { app.kubernetes.io/part-of: heliograph }\nspec:\n" + body)


def main(arguments: list[str]) -> int:
    files = {
        FOLDER / "boards" / f"{name}.json": json.dumps(content, indent=2) + "\n" for name, content in BOARDS.items()
    }
    files[COMPONENT / "rules.yaml"] = prometheus_rule((FOLDER / "rules.yaml").read_text())
    for path, text in files.items():
        if "--check" not in arguments:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            print(f"{path} is outdated; run python3 deploy/monitoring/generate.py", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
