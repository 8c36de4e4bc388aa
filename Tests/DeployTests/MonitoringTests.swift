import Foundation
import PushProtocol
import ServiceKit
import Testing
import TestSupport

/// Rules, alerts, boards and their runbook against the metrics of the code. `Tests/System/test_monitoring.py` runs them.
@Suite struct MonitoringTests {
    private let rules: [Manifest]

    init() throws {
        let groups = try Manifest.one("deploy/monitoring/rules.yaml")["groups"]?.items ?? []
        rules = groups.flatMap { $0["rules"]?.items ?? [] }
    }

    private var alerts: [Manifest] { rules.filter { $0["alert"] != nil } }

    private func queries(of board: String) throws -> [String] {
        let data = Data(try Repository.text(board).utf8)
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let panels = try #require(object["panels"] as? [[String: Any]])
        return try panels.flatMap { panel in
            try #require(panel["targets"] as? [[String: Any]]).map { try #require($0["expr"] as? String) }
        }
    }

    /// The metric families in a query, without the suffixes of a histogram's series.
    private func families(in query: String) -> Set<String> {
        let unquoted = query.replacing(#/"[^"]*"/#, with: "")
        let names = unquoted.matches(of: #/\b(heliograph|process|rabbitmq)[_:][a-z0-9_:]+/#).map { String($0.0) }
        return Set(
            names.map { name in
                let family = name.replacing(#/_(bucket|count|sum)$/#, with: "")
                return MetricHelp.texts[family] == nil ? name : family
            })
    }

    @Test func `each metric of the code has a help text, and each help text a metric`() throws {
        let files =
            Repository.files(below: "Shared", suffix: ".swift") + Repository.files(below: "Services", suffix: ".swift")
        var names: Set<String> = []
        for file in files where !file.hasSuffix("MetricHelp.swift") {
            names.formUnion(
                try Repository.text(file).matches(
                    of: #/"((?:heliograph|process)_[a-z_]+_[a-z]+|heliograph_[a-z]+|process_threads)"/#
                ).map { String($0.1) })
        }
        // Roles of the database, the database of tests, and the data of a clear command.
        names.subtract([
            "heliograph_rules", "heliograph_feedback", "heliograph_token_registry", "heliograph_events_api",
            "heliograph_test", "heliograph_clear", "heliograph_recordings",
        ])
        // Their label is made of parts.
        for part in ["devices", "pushes", "without"] { names.insert("heliograph_registry_campaign_\(part)_total") }
        #expect(names.subtracting(MetricHelp.texts.keys) == [])
        #expect(Set(MetricHelp.texts.keys).subtracting(names) == [])
        for (name, text) in MetricHelp.texts {
            #expect(!text.contains("\\") && !text.contains("\n") && text.hasSuffix("."), "\(name)")
        }
    }

    @Test func `each metric is described in a README`() throws {
        let pages = try (["README.md"] + Repository.files(below: "Services", suffix: "README.md"))
            .map { try Repository.text($0) }.joined()
        for name in MetricHelp.texts.keys where name.hasPrefix("heliograph_") {
            #expect(pages.contains("`\(name)`"), "\(name)")
        }
    }

    @Test func `rules and boards use metrics that exist`() throws {
        let recorded = Set(rules.compactMap { $0["record"]?.text })
        // Of the broker's plugin (RabbitMQ: Monitoring with Prometheus).
        let brokers: Set = ["rabbitmq_detailed_queue_messages_ready", "rabbitmq_detailed_queue_consumers"]
        let known = recorded.union(brokers).union(MetricHelp.texts.keys)
        var used = 0
        let boards = Repository.files(below: "deploy/monitoring/boards", suffix: ".json")
        #expect(boards.count == 3)
        for query in try rules.compactMap({ $0["expr"]?.text }) + boards.flatMap(queries) {
            let families = families(in: query)
            used += families.count
            // Prometheus' own metric about a target.
            #expect(!families.isEmpty || query.contains("up{"), "\(query)")
            #expect(families.subtracting(known) == [], "\(query)")
        }
        #expect(used > 80)
    }

    @Test func `each alert has a severity, a summary and a section of its runbook, which has no other sections`() throws
    {
        let page = try Repository.text("deploy/operations/alerts.md")
        let sections = page.matches(of: #/\n## (\w+)\n([\s\S]*?)(?=\n## |$)/#)
        let texts = Dictionary(uniqueKeysWithValues: sections.map { (String($0.1), String($0.2)) })
        #expect(alerts.count > 20)
        for alert in alerts {
            let name = try #require(alert["alert"]?.text)
            let severity = try #require(alert["labels.severity"]?.text, "\(name)")
            #expect(["page", "ticket"].contains(severity), "\(name)")
            #expect(alert["annotations.summary"]?.text?.isEmpty == false, "\(name)")
            let anchor = "deploy/operations/alerts.md#\(name.lowercased())"
            #expect(alert["annotations.runbook_url"]?.text == anchor)
            let text = texts[name] ?? ""
            #expect(text.contains("**Means.** \(severity.capitalized)."), "\(name)")
            #expect(text.contains("**Look.**") && text.contains("**Do.**"), "\(name)")
        }
        #expect(Set(texts.keys) == Set(alerts.compactMap { $0["alert"]?.text }))
        #expect(alerts.count == texts.count)
    }

    @Test func `each alert has a unit test`() throws {
        let tests = try Manifest.one("deploy/monitoring/rules-test.yaml")["tests"]?.items ?? []
        let expected = tests.flatMap { $0["alert_rule_test"]?.items ?? [] }
        let firing = expected.filter { $0["exp_alerts"]?.items.isEmpty == false }.compactMap { $0["alertname"]?.text }
        let quiet = expected.filter { $0["exp_alerts"]?.items.isEmpty == true }.compactMap { $0["alertname"]?.text }
        #expect(Set(firing) == Set(alerts.compactMap { $0["alert"]?.text }))
        #expect(Set(quiet) == Set(firing))
    }

    @Test func `commands of pushctl in the runbook exist`() throws {
        let page = try Repository.text("deploy/operations/alerts.md")
        let readme = try Repository.text("Services/Pushctl/README.md")
        let commands = page.matches(of: #/`pushctl ([a-z-]+(?: [a-z-]+)*)/#).map { String($0.1) }
        #expect(commands.count > 8)
        for command in commands { #expect(readme.contains("pushctl \(command)"), "\(command)") }
    }

    @Test func `Prometheus scrapes each service of compose`() throws {
        let jobs = try Manifest.one("deploy/monitoring/prometheus.yaml")["scrape_configs"]?.items ?? []
        let targets = jobs.first { $0["job_name"]?.text == "heliograph" }?["static_configs"]?.items ?? []
        let scraped = targets.compactMap { $0["labels.service"]?.text }
        #expect(Set(scraped) == (try Repository.services()).subtracting(["provider-simulator"]))
        let component = try Manifest.all("deploy/kubernetes/components/monitoring/pods.yaml")
        let selected = component.first?["spec.selector.matchExpressions.0.values"]?.items.compactMap(\.text)
        #expect(selected.map(Set.init) == Set(scraped))
        #expect(component.compactMap { $0["spec.podMetricsEndpoints.0.port"]?.text } == ["admin", "metrics"])
        for (target, service) in zip(targets, scraped) { #expect(target["targets.0"]?.text == "\(service):9400") }
    }
}
