import Foundation
import Providers
import PushProtocol
import TestSupport
import Testing

/// The page on the fields of each platform agrees with the encoders.
@Suite struct PlatformTableTests {
    private static let now = Timestamp(milliseconds: 1_767_225_600_000)

    /// A row of the page: the members that a key sets or changes.
    struct Row: CustomTestStringConvertible {
        var key: String
        var members: [Provider: [String]]

        var testDescription: String { key }
    }

    static func rows() throws -> [Row] {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Services/Rules/Language/platforms.md")
        let table = try String(contentsOf: page, encoding: .utf8).split(separator: "\n\n")
            .first { $0.hasPrefix("| key | APNs | FCM |") }
        return try #require(table).split(separator: "\n").dropFirst(2).map { line in
            let cells = line.split(separator: " | ").map { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
            return Row(key: cells[0][0], members: [.apns: cells[1], .fcm: cells[2]])
        }
    }

    @Test(arguments: try rows(), [Provider.apns, .fcm]) func `a key sets the members that the page lists`(
        row: Row, provider: Provider
    ) throws {
        let (plain, changed) = try #require(Self.samples[row.key])
        let before = try Self.leaves(plain, provider)
        let after = try Self.leaves(changed, provider)
        let differing = after.filter { before[$0.key] != $0.value }.keys
        #expect(!differing.isEmpty)
        let listed = try #require(row.members[provider])
        func isBelow(_ leaf: String, _ member: String) -> Bool { leaf == member || leaf.hasPrefix("\(member).") }
        for leaf in differing { #expect(listed.contains { isBelow(leaf, $0) }, "\(leaf) is not in the page") }
        for member in listed { #expect(differing.contains { isBelow($0, member) }, "\(member) does not change") }
    }

    @Test func `the page has a row for each key`() throws {
        #expect(try Set(Self.rows().map(\.key)) == Set(Self.samples.keys))
    }

    private struct Sample {
        var content = Content(title: "Hi", body: "Yo", interruptionLevel: .active)
        var expiresAt: Timestamp?
    }

    /// A notification without and with each key.
    private static let samples: [String: (Sample, Sample)] = {
        func changed(_ change: (inout Sample) -> Void) -> (Sample, Sample) {
            var sample = Sample()
            change(&sample)
            return (Sample(), sample)
        }
        return [
            "say.title": changed { $0.content.title = "Hello" },
            "say.subtitle": changed { $0.content.subtitle = "News" },
            "say.body": changed { $0.content.body = "You" },
            "say.image": changed { $0.content.image = "https://example.com/a.png" },
            "say.deep-link": changed { $0.content.deepLink = "app://a" },
            "say.data": changed { $0.content.data = ["n": 1] },
            "how.sound": changed { $0.content.sound = "default" },
            "how.badge": changed { $0.content.badge = 3 },
            "how.category": changed { $0.content.category = "order" },
            "how.thread": changed { $0.content.thread = "order/1" },
            "how.interruption-level": changed { $0.content.interruptionLevel = .passive },
            "how.collapse-key": changed { $0.content.collapseKey = "order/1" },
            "how.expires-after": changed { $0.expiresAt = now + .seconds(3600) },
        ]
    }()

    /// The members of a request without nested members, by path, and its headers.
    private static func leaves(_ sample: Sample, _ provider: Provider) throws -> [String: JSONValue] {
        let id = UUID(uuidString: "00000000-0000-4000-8000-000000000001")!
        let token = PayloadPreview.token(for: provider).secret
        let push = Push.sample(
            sample.content, provider: provider, expiresAt: sample.expiresAt,
            targets: [.sample(token: token, device: id, notification: id)], id: id)
        let request = try PayloadPreview(push, bundle: "org.example", now: now).request.get()
        let body = try WireCoding.decode(JSONValue.self, from: request.body)
        var leaves: [String: JSONValue] = [:]
        add(provider == .fcm ? body["message"] ?? .null : body, at: "", to: &leaves)
        for header in request.headers where header.hasPrefix("apns-") {
            let parts = header.split(separator: ": ", maxSplits: 1)
            leaves[String(parts[0])] = .string(String(parts[1]))
        }
        return leaves
    }

    private static func add(_ value: JSONValue, at path: String, to leaves: inout [String: JSONValue]) {
        if let members = value.object {
            for (name, member) in members { add(member, at: path.isEmpty ? name : "\(path).\(name)", to: &leaves) }
        } else {
            leaves[path] = value
        }
    }
}
