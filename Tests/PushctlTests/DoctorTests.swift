import DecisionLog
import Foundation
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import FeedbackStore
@testable import Pushctl
@testable import ServiceConnections

/// The checks of `pushctl doctor`: each problem is found, with its cure.
@Suite struct DoctorTests {
    private static let apps = ["family-portal", "other"].compactMap(AppID.init(rawValue:))
    private static let definitions = BrokerDefinitions(apps: apps)

    /// The export of a broker with the definitions and the topology of this release, and one change.
    private func export(_ change: (inout [String: JSONValue]) -> Void = { _ in }) throws -> BrokerExport {
        var document = Self.definitions.json { _ in "secret" }.object ?? [:]
        let topology = Topology(apps: Self.apps)
        document["queues"] = .array(
            topology.queues.map { queue in
                [
                    "name": .string(queue.name), "vhost": "heliograph",
                    "arguments": .object(
                        queue.arguments.mapValues {
                            switch $0 {
                            case .text(let text): .string(text)
                            case .number(let number): .int(number)
                            }
                        }),
                ]
            })
        document["exchanges"] = .array(
            topology.exchanges.map {
                ["name": .string($0.name), "vhost": "heliograph", "type": .string($0.kind.rawValue)]
            })
        let bindings =
            topology.bindings.map { ($0.exchange, $0.queue, $0.routingKey) }
            + topology.exchangeBindings.map { ($0.source, $0.destination, $0.routingKey) }
        document["bindings"] = .array(
            bindings.map { source, destination, key in
                [
                    "source": .string(source), "destination": .string(destination), "routing_key": .string(key),
                    "vhost": "heliograph",
                ]
            })
        change(&document)
        return try BrokerExport(json: try WireCoding.encode(JSONValue.object(document)))
    }

    private func findings(_ change: (inout [String: JSONValue]) -> Void = { _ in }) throws -> [Finding] {
        let export = try export(change)
        return export.rights(Self.definitions) + export.policies() + export.arguments(Topology(apps: Self.apps))
    }

    /// Removes the entries of a section that a condition selects.
    private static func without(
        _ section: String, _ document: inout [String: JSONValue], where matches: (JSONValue) -> Bool
    ) {
        document[section] = .array((document[section]?.array ?? []).filter { !matches($0) })
    }

    @Test func `the definitions of this release have no problem`() throws {
        #expect(try findings().map(\.severity) == [.ok, .ok, .ok])
    }

    @Test func `a missing policy, user, permission, topic permission and binding is an error with its cure`() throws {
        let cases: [(String, (JSONValue) -> Bool, String, String)] = [
            ("policies", { $0["name"] == "dead-pushes" }, "the policy dead-pushes is missing", "import_definitions"),
            ("users", { $0["name"] == "rules" }, "the broker has no user rules", "pushctl topology definitions"),
            (
                "permissions", { $0["user"] == "feedback" }, "the user feedback has no permissions",
                "rabbitmqctl set_permissions -p heliograph feedback '^$' "
            ),
            (
                "topic_permissions", { $0["user"] == "upstream-other" },
                "the user upstream-other may publish to events with any key", "pushctl topology definitions"
            ),
            (
                "bindings", { $0["destination"] == "feedback.erasures" }, "2 bindings are missing, such as ",
                "pushctl topology apply"
            ),
        ]
        for (section, matches, message, cure) in cases {
            let errors = try findings { Self.without(section, &$0, where: matches) }.filter { $0.severity == .error }
            #expect(errors.count == 1, "\(section): \(errors)")
            #expect(errors.first?.message.hasPrefix(message) == true, "\(section): \(errors)")
            #expect(errors.first?.cure?.contains(cure) == true, "\(section): \(errors)")
        }
    }

    @Test func `a widened right, a changed policy, argument and exchange is an error`() throws {
        func changed(_ section: String, _ name: String, _ member: String, _ value: JSONValue) throws -> [Finding] {
            try findings { document in
                document[section] = .array(
                    (document[section]?.array ?? []).map { entry in
                        guard entry["name"]?.string == name || entry["user"]?.string == name else { return entry }
                        return entry.merging(.object([member: value]))
                    })
            }.filter { $0.severity == .error }
        }
        #expect(
            try changed("permissions", "rules", "write", ".*").map(\.message) == [
                "the user rules may write “.*”, expected is “\(BusRole.rules.permissions.write)”"
            ])
        #expect(try changed("policies", "dead-letters", "priority", 9).count == 1)
        #expect(
            try changed("queues", "rules.outcomes", "arguments", ["x-delivery-limit": 5]).map(\.message) == [
                "the queue rules.outcomes has another x-delivery-limit"
            ])
        #expect(try changed("exchanges", "dead", "type", "direct").count == 1)
    }

    @Test func `an input that is no export is refused`() {
        for text in ["", "[]", "{}", #"{"users":[]}"#] {
            let error = #expect(throws: CommandError.self) { try BrokerExport(json: Array(text.utf8)) }
            #expect(error?.status == .input && error?.description.contains("export_definitions") == true)
        }
    }

    @Test(arguments: [
        (Duration.milliseconds(1500), Finding.Severity.ok), (.milliseconds(-1500), .ok), (.seconds(5), .warning),
        (.seconds(-5), .warning), (.seconds(90), .error), (.seconds(-90), .error),
    ])
    func `a clock that differs is a warning, and an error from half a minute on`(
        difference: Duration, severity: Finding.Severity
    ) {
        let finding = ClockComparison.finding("the broker", difference: difference, error: .milliseconds(100))
        #expect(finding.severity == severity && (finding.cure != nil) == (severity != .ok))
    }

    @Test func `the server's settings, dead rows, guards and gaps have findings`() {
        var server = DatabaseInspection(
            serverVersion: 150_008, connections: 10, maximumConnections: 97, durabilityRisks: [],
            clockDifference: .milliseconds(3))
        #expect(DatabaseDoctor.server(server).map(\.severity) == [.ok, .ok, .ok, .ok])
        server.serverVersion = 140_001
        server.connections = 95
        server.durabilityRisks = ["fsync is off"]
        server.clockDifference = Duration.seconds(-40)
        #expect(DatabaseDoctor.server(server).map(\.severity) == [.error, .warning, .error, .error])

        #expect(DatabaseDoctor.deadRows([]).map(\.severity) == [.ok])
        #expect(DatabaseDoctor.deadRows([("rules.held", 3)]).first?.cure == "pushctl dead-rows list --table rules.held")
        #expect(DatabaseDoctor.guards([], quarantined: 0).map(\.severity) == [.ok])
        #expect(DatabaseDoctor.guards([], quarantined: 2).first?.message == "2 registrations are quarantined")
        let now = Date(timeIntervalSince1970: 1_767_225_600)
        let gap = Census.Gap(
            app: "a", state: "missing-sender", number: 1, notification: UUID(), event: "e-1", decidedAt: now)
        #expect(DatabaseDoctor.census(Census(at: now, countedAt: now, rows: [], gaps: [])).map(\.severity) == [.ok])
        let gone = DatabaseDoctor.census(Census(at: now, countedAt: nil, rows: [], gaps: [gap]))
        #expect(gone.map(\.severity) == [.error, .warning])
        #expect(gone.first?.cure == "pushctl explain e-1 --app a")
    }

    @Test func `a report is unhealthy with an error only, and prints each cure below its finding`() {
        var report = DoctorReport(findings: [.ok("a", "works"), .warning("b", "odd\u{7}", cure: "look")])
        #expect(report.isHealthy && report.json["healthy"] == true && report.json["warnings"] == 1)
        #expect(
            report.lines(isColored: false) == [
                "severity  check  finding", "ok        a      works", "warning   b      odd\u{fffd}",
                "          next: look", "errors: 0, warnings: 1, skipped: 0",
            ])
        report.findings.append(.error("c", "broken", cure: "mend"))
        #expect(!report.isHealthy && report.json["errors"] == 1)
        #expect(
            report.json["findings"]?.array?.last == [
                "severity": "error", "check": "c", "message": "broken", "cure": "mend",
            ])
    }

    // MARK: - Credentials

    private func catalog(_ folder: URL, _ apps: String) throws -> AppCatalog {
        let file = folder.appending(path: "apps.yaml")
        try Data(apps.utf8).write(to: file)
        return try AppCatalog.load(path: file.path, using: [])
    }

    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    @Test func `a missing or invalid credential is an error that quotes nothing of it`() async throws {
        try await withFolder { folder in
            let key = folder.appending(path: "a.p8")
            try Data("-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----".utf8).write(to: key)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key.path)
            let account = folder.appending(path: "a.json")
            try Data("{}".utf8).write(to: account)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: account.path)
            let catalog = try catalog(
                folder,
                """
                apps:
                  a:
                    apns: { topic: com.example.a, key-id: ABCDE12345, team-id: FGHIJ67890, key-file: a.p8 }
                    fcm: { service-account-file: a.json }
                  b:
                    apns: { topic: com.example.b, key-id: ABCDE12345, team-id: FGHIJ67890, key-file: b.p8 }
                  c: {}
                """)
            let doctor = CredentialDoctor(catalog: catalog)
            let findings = await doctor.findings()
            let errors = findings.filter { $0.severity == .error }.map(\.message)
            #expect(errors.count == 3, "\(findings)")
            #expect(errors[0].hasSuffix("the signing key of a is not an ES256 key (PKCS#8 PEM)"))
            #expect(errors[1].contains("a.json: is not a service account's key file"))
            #expect(errors[2].hasSuffix("the signing key of b cannot be read"))
            #expect(!"\(findings)".contains("SECRET"))
            #expect(findings.filter { $0.severity == .warning }.map(\.cure) == ["chmod o-rwx \(key.path)"])
            #expect(
                doctor.hosts() == ["api.push.apple.com", "api.sandbox.push.apple.com", "fcm.googleapis.com"])
        }
    }

    @Test func `a certificate is an error once it has expired, and a warning before`() throws {
        let file = try TestCertificates.shared().authorityFile
        func finding(_ now: Timestamp) -> Finding {
            CredentialDoctor.certificate(file, "certificate", now: now, cure: "renew it")
        }
        let far = Timestamp(Date(timeIntervalSince1970: 100_000_000_000))
        #expect(finding(.now).severity != .error)
        #expect(finding(far).severity == .error && finding(far).cure == "renew it")
        #expect(finding(Timestamp(milliseconds: 0)).severity == .ok)
        #expect(
            CredentialDoctor.certificate("/nowhere.pem", "certificate", now: .now, cure: "x").severity == .error)
    }
}
