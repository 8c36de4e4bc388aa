import Foundation
import PushProtocol
import RegistryStore
import Testing
import TestSupport

@testable import Contracts

/// The schemas and the readers accept and refuse the same messages.
@Suite struct SchemaTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "PushProtocolTests/Golden")

    static let goldenFiles: [String] =
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }.sorted())
        ?? []

    /// The message and the contract of a golden file, such as `push.addresses.v2.json`.
    static func golden(_ file: String) throws -> (value: JSONValue, contract: MessageContract) {
        let words = file.split(separator: ".")
        let contract = try #require(
            MessageContract.all.first { $0.name == words[0] && "v\($0.version)" == words[words.count - 2] })
        let bytes = Array(try Data(contentsOf: folder.appending(path: file)))
        let value = try WireCoding.decode(JSONValue.self, from: bytes)
        return (contract.name == "direct-notification" ? direct(value) : value, contract)
    }

    /// The event with this direct notification as its data.
    private static func direct(_ data: JSONValue) -> JSONValue {
        var members = event.object ?? [:]
        members["type"] = .string(DirectNotification.eventType)
        members["data"] = data
        return .object(members)
    }

    /// Whether the service's reader accepts a message.
    static func reads(_ value: JSONValue, as contract: MessageContract) -> Bool {
        guard let body = try? WireCoding.encode(value) else { return false }
        do {
            switch contract.name {
            case "notification": _ = try Notification.decode(wireBody: body)
            case "notification-revocation": _ = try NotificationRevocation.decode(wireBody: body)
            case "push": _ = try Push.decode(wireBody: body)
            case "outcomes": _ = try Outcomes.decode(wireBody: body)
            case "device-command": _ = try DeviceCommand.decode(wireBody: body)
            case "device-event": _ = try DeviceEvent.decode(wireBody: body)
            case "channel-request": _ = try ChannelRequest.decode(wireBody: body)
            case "channel-answer": _ = try ChannelAnswer.decode(wireBody: body)
            case "census-report": _ = try CensusReport.decode(wireBody: body)
            case "campaign-cursor": _ = try CampaignCursor.decode(wireBody: body)
            default:
                let event = try CloudEvents.decode(
                    routingKey: "family-portal.x", contentType: CloudEvents.structuredContentType, headers: [:],
                    body: body)
                guard contract.name == "direct-notification" else { return true }
                guard event.type == DirectNotification.eventType else { return false }
                _ = try DirectNotification(event.data)
            }
            return true
        } catch {
            return false
        }
    }

    @Test func `every message version has golden files, except CloudEvents and the registry's cursor`() throws {
        let contracts = Set(try Self.goldenFiles.map { try Self.golden($0).contract.id })
        let others: Set = [
            "domain-event.v1", "direct-notification.v1", "delivery-report.v1", "receipt-report.v1",
            "dead-device-report.v1", "campaign-cursor.v1",
        ]
        #expect(contracts.union(others) == Set(MessageContract.all.map(\.id)))
        #expect(Self.goldenFiles.count >= 35)
    }

    @Test(arguments: goldenFiles) func `a golden file is valid, and its schema describes all of its members`(
        file: String
    ) throws {
        let (value, contract) = try Self.golden(file)
        #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: value) == [])
        #expect(Self.reads(value, as: contract))
    }

    /// Columns of different lengths, the grammar of conditions, and a part's number are beyond a schema.
    private static func isBeyondSchema(_ path: String, in contract: MessageContract) -> Bool {
        let isColumn = ["push.v2", "outcomes.v2"].contains(contract.id) && path.contains(".")
        return isColumn && (path.hasPrefix("targets.") || path.hasPrefix("accepted."))
            || ["broadcast.condition", "audience.of"].contains(path)
    }

    static let replacements: [JSONValue] = [nil, true, "x", 1, 1.5, [], [:], -1, "", ["x"]]

    @Test(arguments: goldenFiles) func `a reader accepts every changed message that its schema accepts`(
        file: String
    ) throws {
        let (value, contract) = try Self.golden(file)
        try Self.compare(value, contract)
    }

    static func compare(_ value: JSONValue, _ contract: MessageContract) throws {
        let validator = SchemaValidator(contract.schema)
        var refused = 0
        for change in value.mutations(with: replacements) {
            let (isValid, isRead) = (validator.accepts(change.value), reads(change.value, as: contract))
            if isValid, !isBeyondSchema(change.path, in: contract) {
                #expect(isRead, "\(contract.id): \(change.path) \(change.change): the schema accepts it")
            }
            if change.change == "removed", !isBeyondSchema(change.path, in: contract) {
                #expect(isValid == isRead, "\(contract.id): without \(change.path): read \(isRead)")
            }
            if !isValid { refused += 1 }
        }
        #expect(refused > 10)
    }

    static let event: JSONValue = [
        "specversion": "1.0", "id": "e-1", "source": "/chat", "type": "chat.message.created", "subject": "s",
        "time": "2026-03-31T09:00:00Z", "expirytime": "2026-03-31T09:00:00.5+02:00", "traceparent": "00-1-2-01",
        "datacontenttype": "application/json", "data": ["a": [1]],
    ]

    @Test func `the schema of events accepts what rules read`() throws {
        let contract = MessageContract.domainEvent
        #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: Self.event) == [])
        try Self.compare(Self.event, contract)
        let encoded = Self.event.merging(["data_base64": "AAAA"])
        #expect(!SchemaValidator(contract.schema).accepts(encoded) && !Self.reads(encoded, as: contract))
    }

    @Test(arguments: [
        """
        {"users": ["1", 2], "content": {"title": "t", "subtitle": "s", "body": "b", "badge": 1, "sound": "default",
         "image": "https://e.x/i", "link": "app://x", "category": "c", "thread": "t", "data": {"a": null},
         "interruptionLevel": "active", "apns": {"headers": {"apns-priority": "5"}, "payload": {"a": 1}},
         "fcm": {"message": {"android": {}}, "validateOnly": true}},
         "type": "chat", "lane": "bulk", "at": "2026-03-31T09:00:00Z", "ttl": 60, "collapse": "c", "pushOnly": true}
        """,
        """
        {"group": "team", "roles": ["lead"], "content": {"data": {}}, "silent": true, "expires": "2026-03-31T09:00:00Z"}
        """,
        #"{"topic": "photos", "content": {"body": "b"}}"#, #"{"tag": "beta", "content": {"badge": 0}}"#,
        #"{"everyone": true, "content": {"title": "t"}, "lane": "bulk"}"#,
    ]) func `the schema of direct notifications accepts what rules read`(data: String) throws {
        let data = try WireCoding.decode(JSONValue.self, from: Array(data.utf8))
        let contract = MessageContract.directNotification
        #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: Self.direct(data)) == [])
        try Self.compare(Self.direct(data), contract)
        let additions: [String: JSONValue] = ["users": ["1"], "everyone": true, "roles": ["x"], "silent": true]
        for (name, value) in additions {
            let event = Self.direct(data.merging(.object([name: value])))
            let isValid = SchemaValidator(contract.schema).accepts(event)
            #expect(isValid == Self.reads(event, as: contract), "with \(name)")
        }
        let members = contract.schema["properties"]?["data"]?["properties"]?.object?.keys.map(\.self) ?? []
        #expect(Set(members) == Set(DirectNotification.members))
    }

    @Test func `the schema of campaign cursors accepts what the registry writes`() throws {
        let trace = Trace(id: UUID(), correlation: "e", causation: "e")
        let cursor = CampaignCursor(
            trace, app: BusChannel.placeholder, campaign: UUID(), range: 1, from: "", copy: 1)
        let value = try WireCoding.decode(JSONValue.self, from: cursor.wireBody())
        #expect(SchemaValidator(MessageContract.campaignCursor.schema, isClosed: true).problems(of: value) == [])
        #expect(MessageContract.campaignCursor.messageType == CampaignCursor.messageType)
        #expect(MessageContract.campaignCursor.version == CampaignCursor.messageVersion)
        try Self.compare(value, .campaignCursor)
    }

    @Test func `an unknown member is refused where the reader refuses it, and only there`() throws {
        var strict = 0
        for file in Self.goldenFiles {
            let (value, contract) = try Self.golden(file)
            let validator = SchemaValidator(contract.schema)
            for (path, changed) in Self.withUnknownMember(value) {
                let (isValid, isRead) = (validator.accepts(changed), Self.reads(changed, as: contract))
                #expect(isValid == isRead, "\(file): an unknown member in \(path)")
                if !isRead { strict += 1 }
            }
        }
        #expect(strict >= 4)
    }

    private static func withUnknownMember(_ value: JSONValue) -> [(path: String, value: JSONValue)] {
        guard case .object(let members) = value else { return [] }
        return [("", value.merging(["unknown": 1]))]
            + members.sorted { $0.key < $1.key }.flatMap { name, member in
                withUnknownMember(member).map { ("\(name).\($0.path)", value.merging([name: $0.value])) }
            }
    }

    @Test func `every member of every schema has a description`() {
        func check(_ schema: JSONValue, _ place: String) {
            for (name, member) in schema["properties"]?.object ?? [:] where member.object?["description"] == nil {
                let isExplained =
                    member["$ref"] != nil || member == false || member["anyOf"] != nil || member == ["maxItems": 0]
                #expect(isExplained, "\(place).\(name)")
            }
            switch schema {
            case .object(let members):
                // Conditions repeat described members.
                for (name, member) in members where !["if", "then", "else", "not"].contains(name) {
                    check(member, "\(place).\(name)")
                }
            case .array(let elements): for element in elements { check(element, place) }
            default: break
            }
        }
        for contract in MessageContract.all { check(contract.schema, contract.id) }
    }
}
