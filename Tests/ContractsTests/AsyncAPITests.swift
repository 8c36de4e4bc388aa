import Foundation
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import Contracts

/// The AsyncAPI document lists the topology's exchanges and queues with their users, and the files equal it.
@Suite struct AsyncAPITests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy/contracts")

    let document = AsyncAPIDocument(release: Build.version).json

    /// To write the files again: `pushctl contracts asyncapi --folder deploy/contracts`.
    @Test func `the files in deploy equal the generated ones`() throws {
        let file = try String(contentsOf: Self.folder.appending(path: "asyncapi.json"), encoding: .utf8)
        #expect(file == document.pretty, "run pushctl contracts asyncapi --folder deploy/contracts")
        let schemas = Self.folder.appending(path: AsyncAPIDocument.schemaFolder)
        let names = try FileManager.default.contentsOfDirectory(atPath: schemas.path)
        #expect(Set(names) == Set(MessageContract.all.map(\.fileName)))
        for contract in MessageContract.all {
            let text = try? String(contentsOf: schemas.appending(path: contract.fileName), encoding: .utf8)
            #expect(text == contract.schema.pretty, "\(contract.fileName)")
        }
    }

    @Test func `every exchange and queue of the topology is a channel`() {
        let channels = document["channels"]?.object ?? [:]
        let bindings = channels.values.compactMap { $0["bindings"]?["amqp"] }
        let exchanges = Set(bindings.compactMap { $0["exchange"]?["name"]?.string })
        let queues = bindings.compactMap { $0["queue"]?["name"]?.string }
        let app = AppID(rawValue: "a-b")!
        let topology = Topology(
            apps: [app],
            reports: ReportConsumers(
                upstreams: [app], webhooks: [.init(app: app, name: WebhookName(rawValue: "c-d")!, kinds: [.receipt])]))
        #expect(exchanges == Set(topology.exchanges.map(\.name)))
        #expect(
            queues.sorted()
                == topology.queues.map { $0.name.replacing("a-b", with: "{app}").replacing("c-d", with: "{webhook}") }
                .sorted())
        for (name, channel) in channels { #expect(channel["messages"]?.object?.isEmpty == false, "\(name)") }
    }

    @Test func `no placeholder is left`() { #expect(!document.pretty.contains("placeholder")) }

    @Test func `every parameter of an address is described`() {
        for (name, channel) in document["channels"]?.object ?? [:] {
            let address = channel["address"]?.string ?? ""
            let written = Set(address.matches(of: /\{([a-zA-Z]+)\}/).map { String($0.1) })
            #expect(written == Set(channel["parameters"]?.object?.keys.map(\.self) ?? []), "\(name)")
        }
    }

    @Test func `every reference names a part of the document or a schema file`() {
        let files = Set(MessageContract.all.map { "\(AsyncAPIDocument.schemaFolder)/\($0.fileName)" })
        var found = 0
        func check(_ value: JSONValue) {
            switch value {
            case .object(let members):
                if let reference = members["$ref"]?.string {
                    found += 1
                    let target = reference.split(separator: "/").dropFirst().reduce(Optional(document)) {
                        $0?[String($1)]
                    }
                    #expect(files.contains(reference) || reference.hasPrefix("#/") && target != nil, "\(reference)")
                }
                members.values.forEach(check)
            case .array(let elements): elements.forEach(check)
            default: break
            }
        }
        check(document)
        #expect(found > 200)
    }

    /// (user, action, channel) of each operation.
    private func operations(of document: JSONValue) -> Set<String> {
        Set(
            (document["operations"]?.object ?? [:]).values.map { operation in
                let channel = operation["channel"]?["$ref"]?.string?.split(separator: "/").last ?? ""
                return [
                    operation["x-heliograph-user"]?.string ?? "", operation["action"]?.string ?? "", String(channel),
                ]
                .joined(separator: " ")
            })
    }

    @Test(arguments: [
        ("upstream", ["send events", "receive upstream-reports-app"]), ("events-api", ["send events"]),
        ("webhook-sender", ["receive webhook-sender-reports-app", "send exchange-dead", "send exchange-retry-6h"]),
        (
            "rules",
            [
                "send notifications", "send revocations", "send delivery-reports", "send receipt-reports",
                "send census", "send exchange-dead",
                "send exchange-retry-5s", "receive rules-events", "receive rules-events-app", "receive rules-outcomes",
                "receive rules-erasures", "receive rules-census", "send channel-requests", "receive rules-channels",
            ]
        ),
        (
            "apns-sender",
            [
                "send outcomes", "send outcomes-elsewhere", "send census", "send exchange-marks",
                "receive apns-sender-pushes-bulk-app", "receive senders-revocations", "send channel-answers",
                "receive apns-sender-channels",
            ]
        ),
        ("feedback", ["send device-commands", "receive feedback-outcomes", "receive feedback-erasures"]),
        (
            "token-registry",
            [
                "send pushes", "send outcomes", "send device-events", "send campaign-cursors",
                "send dead-device-reports",
            ]
        ),
    ]) func `users send and receive by their permissions`(user: String, expected: [String]) {
        let found = operations(of: document)
        for operation in expected { #expect(found.contains("\(user) \(operation)"), "\(user) \(operation)") }
        let own = found.filter { $0.hasPrefix("\(user) ") }
        let limits = ["upstream": 2, "events-api": 1, "feedback": 1 + 1 + 1 + 6 + 2, "webhook-sender": 1 + 6 + 1]
        if let limit = limits[user] { #expect(own.count == limit, "\(own)") }
    }

    @Test func `messages of a queue are those that are routed to it`() {
        func messages(_ channel: String) -> Set<String> {
            Set(document["channels"]?[channel]?["messages"]?.object?.keys.map(\.self) ?? [])
        }
        #expect(messages("rules-events-app") == ["domain-event.v1", "direct-notification.v1"])
        #expect(messages("rules-events") == messages("rules-events-app"))
        #expect(messages("token-registry-notifications-bulk") == ["notification.v1"])
        #expect(messages("token-registry-devices") == ["device-command.v1"])
        #expect(messages("token-registry-devices-app-dead") == ["device-command.v1"])
        #expect(messages("feedback-outcomes") == ["outcomes.v1", "outcomes.v2"])
        #expect(messages("senders-revocations") == ["device-event.v1", "notification-revocation.v1", "mark"])
        #expect(messages("rules-erasures") == ["device-event.v1"])
        let reports: Set = ["delivery-report.v1", "receipt-report.v1", "dead-device-report.v1"]
        #expect(messages("upstream-reports-app") == reports)
        #expect(messages("webhook-sender-reports-app") == reports)
        #expect(messages("retry-5s").contains("push.v2"))
    }

    @Test func `the document of one user has only its operations, and the apps are values of a parameter`() {
        let app = AppID(rawValue: "family-portal")!
        let own = AsyncAPIDocument(release: "1", apps: [app], user: .upstream).json
        #expect(operations(of: own) == ["upstream send events", "upstream receive upstream-reports-app"])
        #expect(own["channels"]?.object?.keys.sorted() == ["events", "upstream-reports-app"])
        let messages = own["components"]?["messages"]?.object?.keys.sorted()
        #expect(
            messages == [
                "dead-device-report.v1", "delivery-report.v1", "direct-notification.v1", "domain-event.v1",
                "receipt-report.v1",
            ])
        #expect(own["channels"]?["events"]?["parameters"]?["app"]?["enum"] == ["family-portal"])
    }

    @Test func `pretty JSON is read as the same value`() throws {
        let bytes = Array(document.pretty.utf8)
        #expect(try WireCoding.decode(JSONValue.self, from: bytes, maximumSize: bytes.count) == document)
        #expect(JSONValue.string("ä\"/\n").pretty == "\"ä\\\"/\\n\"\n")
    }
}
