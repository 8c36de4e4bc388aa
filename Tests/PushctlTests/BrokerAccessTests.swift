import AMQP
import Foundation
import Logging
import Messaging
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl

/// Logs in as each user of the generated definitions on a real broker. Compares its rights with a handwritten table of
/// exchanges, routing keys and queues.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4))) struct BrokerAccessTests {
    private static let apps = ["demo", "other"].compactMap(AppID.init(rawValue:))
    private static let reports = ReportConsumers(
        upstreams: apps,
        webhooks: apps.map { .init(app: $0, name: WebhookName(rawValue: "crm")!, kinds: Set(ReportKind.allCases)) })
    private static let logger = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }

    /// The rights of one user.
    private struct Rights: Equatable, Sendable {
        /// Routing keys, by exchange.
        var write: [String: Set<String>] = [:]
        var read: Set<String> = []
    }

    /// The routing keys of every publisher, and one unused key.
    private static let keys: Set<String> =
        Set(WorkQueue.all(apps: apps, reports: reports).map(\.name))
        .union([
            "demo.happened", "other.happened", "demo.heliograph.segment.page", "interactive.demo", "bulk.other",
            "event.reported.demo",
            "event.receipt.demo", "report.dead.other", "webhook-sender", "revoked.demo", "command.suspect.demo",
            "apns.bulk.demo", "fcm.interactive.other", "webpush.bulk.demo", "apns.accepted", "apns.accepted.elsewhere",
            "fcm.unregistered", "webpush.unregistered",
            "registry.skipped", "registry.expired", "registry.accepted", "command.register", "command.unregister",
            "command.deactivate", "command.correct", "command.deactivate.demo", "command.correct.other",
            "command.register.demo", "event.erased", "event.signed-out", "event.user-erased",
            "campaign.cursor", "senders.revocations", "rules", "token-registry", "apns-sender", "fcm-sender",
            "webpush-sender", "feedback", "request.demo", "answer.other",
            "x",
        ])

    /// The table of all rights.
    private static let table: [String: Rights] = {
        let senders: [(name: String, outcomes: Set<String>)] = [
            ("apns", ["apns.accepted", "apns.accepted.elsewhere"]), ("fcm", ["fcm.unregistered"]),
            ("webpush", ["webpush.unregistered"]),
        ]
        var table: [String: Rights] = [
            "rules": stage(
                queues: [
                    "rules.events", "rules.events.app.demo", "rules.events.app.other", "rules.outcomes",
                    "rules.erasures", "rules.census", "rules.channels",
                ],
                [
                    "notifications": [
                        "interactive.demo", "bulk.other", "event.reported.demo", "event.receipt.demo", "revoked.demo",
                    ],
                    // It copies events for any app.
                    "events": keys.filter { $0.contains(".") },
                    "census": ["rules"],
                    "channels": ["request.demo"],
                ]),
            "token-registry": stage(
                queues: Set(
                    ["token-registry.campaigns"]
                        + ["devices", "notifications.interactive", "notifications.bulk"].flatMap { input in
                            ["", ".app.demo", ".app.other"].map { "token-registry.\(input)\($0)" }
                        }),
                [
                    "pushes": ["apns.bulk.demo", "fcm.interactive.other", "webpush.bulk.demo"],
                    "outcomes": ["registry.skipped", "registry.expired"],
                    "events": ["demo.heliograph.segment.page"],
                    "devices": [
                        "event.erased", "event.signed-out", "event.user-erased", "campaign.cursor", "report.dead.other",
                    ],
                    "census": ["token-registry"],
                ]),
            "feedback": stage(
                queues: ["feedback.outcomes", "feedback.erasures"],
                [
                    "devices": [
                        "command.deactivate", "command.correct", "command.deactivate.demo", "command.correct.other",
                        "command.suspect.demo",
                    ],
                    "census": ["feedback"],
                ]),
            // It publishes for every app, whose id is the first word of a key.
            "events-api": Rights(write: ["events": keys.filter { $0.contains(".") }]),
            // Replays go through `return`, which reaches every queue.
            "dead-letters": Rights(
                write: ["dead": keys, "return": keys],
                read: Set(WorkQueue.all(apps: apps, reports: reports).map(\.deadName))),
            "webhook-sender": stage(
                queues: ["webhook-sender.reports.demo.crm", "webhook-sender.reports.other.crm"], [:]),
            "upstream-demo": Rights(
                write: ["events": ["demo.happened", "demo.heliograph.segment.page"]], read: ["upstream.reports.demo"]),
            "upstream-other": Rights(write: ["events": ["other.happened"]], read: ["upstream.reports.other"]),
        ]
        for (sender, outcomes) in senders {
            let managesChannels = sender == "apns"
            let queues =
                apps.flatMap { app in ["interactive", "bulk"].map { "\(sender)-sender.pushes.\($0).\(app)" } }
                + (managesChannels ? ["apns-sender.channels"] : [])
            // The exchange of marks is a direct one with one binding; other keys match nothing.
            var rights = stage(
                queues: Set(queues), ["outcomes": outcomes, "marks": keys, "census": ["\(sender)-sender"]])
            rights.read.insert("senders.revocations")
            if managesChannels { rights.write["channels"] = ["answer.other"] }
            table["\(sender)-sender"] = rights
        }
        return table
    }()

    /// A stage reads its own queues, and retries and dead-letters under their names.
    private static func stage(queues: Set<String>, _ outputs: [String: Set<String>]) -> Rights {
        var rights = Rights(write: outputs, read: queues)
        for exchange in ["retry.5s", "retry.30s", "retry.2m", "retry.15m", "retry.1h", "retry.6h", "dead"] {
            rights.write[exchange] = queues
        }
        return rights
    }

    @Test func `the broker allows each user exactly the rights in the table`() async throws {
        try await Self.withUsers { url, users in
            let topology = Topology(apps: Self.apps, reports: Self.reports)
            #expect(Set(users) == Set(Self.table.keys).union(["topology", "administrator"]))
            let found = try await withThrowingTaskGroup(of: (String, Rights).self) { group in
                for user in users where Self.table[user] != nil {
                    group.addTask { (user, try await Self.rights(at: url(user), topology)) }
                }
                return try await group.reduce(into: [String: Rights]()) { $0[$1.0] = $1.1 }
            }
            var beyond: [String] = []
            var missing: [String] = []
            for (user, expected) in Self.table {
                let rights = try #require(found[user])
                for exchange in Set(rights.write.keys).union(expected.write.keys) {
                    let (has, should) = (rights.write[exchange] ?? [], expected.write[exchange] ?? [])
                    beyond += has.subtracting(should).map { "\(user) writes \($0) to \(exchange)" }
                    missing += should.subtracting(has).map { "\(user) cannot write \($0) to \(exchange)" }
                }
                beyond += rights.read.subtracting(expected.read).map { "\(user) reads \($0)" }
                missing += expected.read.subtracting(rights.read).map { "\(user) cannot read \($0)" }
            }
            #expect(beyond == [])
            #expect(missing == [])
            #expect(found.count == Self.table.count)
        }
    }

    /// Tries everything as the user of `url`.
    private static func rights(at url: String, _ topology: Topology) async throws -> Rights {
        let configuration = try AMQPConfiguration(url: url, connectionName: "access tests")
        let exchanges = topology.exchanges.map(\.name) + ["", "amq.direct", "amq.topic", "amq.fanout", "amq.headers"]
        let queues = topology.queues.map(\.name)
        return try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
            var rights = Rights()
            for exchange in exchanges {
                for key in keys {
                    let message = AMQPMessage(exchange: exchange, routingKey: key, body: [1])
                    switch try await administrator.publish(message) {
                    case .returned(code: 403, _): break
                    case .confirmed, .nacked, .returned: rights.write[exchange, default: []].insert(key)
                    }
                }
            }
            for queue in queues where try await mayRead(queue, configuration, administrator) {
                rights.read.insert(queue)
            }
            return rights
        }
    }

    private static func mayRead(
        _ queue: String, _ configuration: AMQPConfiguration, _ administrator: AMQPAdministrator
    ) async throws -> Bool {
        guard StreamName(rawValue: queue) != nil else { return try await isLetIn(to: queue, by: administrator) }
        // The broker checks the permission first. Then it closes the connection, because a stream does not support
        // basic.get.
        do {
            return try await AMQPAdministrator.with(configuration, logger: logger) {
                try await isLetIn(to: queue, by: $0)
            }
        } catch let error as AMQPError where error.code == .connectionClosed(replyCode: 540) {
            return true
        }
    }

    /// Gets a message, or an empty response. Without the read permission, the broker refuses either.
    private static func isLetIn(to queue: String, by administrator: AMQPAdministrator) async throws -> Bool {
        do throws(AMQPError) {
            _ = try await administrator.get(queue)
            return true
        } catch {
            guard error.code == .channelClosed(replyCode: 403) else { throw error }
            return false
        }
    }

    /// A virtual host with the topology and the users of the definitions, under names unique to this run.
    private static func withUsers(
        _ body: (_ url: @escaping @Sendable (String) -> String, _ users: [String]) async throws -> Void
    ) async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "access tests")
            try await AMQPAdministrator.with(configuration, logger: logger) {
                try await Topology(apps: apps, reports: reports).apply(using: $0)
            }
            let components = try #require(URLComponents(string: url))
            let host = String(components.path.dropFirst())
            let definitions = BrokerDefinitions(apps: apps)
            let file = FileManager.default.temporaryDirectory.appending(path: "\(host).json")
            try Data(WireCoding.encode(renamed(definitions.json { _ in "secret" }, host))).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let outcome: Result<Void, any Error>
            do {
                try await TestBroker.control("import_definitions", file.path)
                let login: @Sendable (String) -> String = { user in
                    var own = components
                    (own.user, own.password) = ("\(host)-\(user)", "secret")
                    return own.string ?? url
                }
                outcome = .success(try await body(login, definitions.users.map(\.name)))
            } catch {
                outcome = .failure(error)
            }
            for user in definitions.users { _ = try? await TestBroker.control("delete_user", "\(host)-\(user.name)") }
            try outcome.get()
        }
    }

    /// The same definitions for the virtual host `host`, with its name as a prefix of each user.
    private static func renamed(_ definitions: JSONValue, _ host: String) -> JSONValue {
        var members = definitions.object ?? [:]
        for (section, value) in members {
            members[section] = .array(
                (value.array ?? []).map { entry in
                    var entry = entry.object ?? [:]
                    if entry["vhost"] != nil { entry["vhost"] = .string(host) }
                    if section == "vhosts" { entry["name"] = .string(host) }
                    let key = section == "users" ? "name" : "user"
                    if let user = entry[key]?.string { entry[key] = .string("\(host)-\(user)") }
                    return .object(entry)
                })
        }
        return .object(members)
    }
}
