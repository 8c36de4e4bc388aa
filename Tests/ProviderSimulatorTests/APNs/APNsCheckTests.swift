import PushProtocol
import Testing

@testable import ProviderSimulator

/// Every check with an accepted and a rejected push.
@Suite struct APNsCheckTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let check: String
        /// `nil` for an accepted push.
        let reason: APNsReason?
        let what: String
        let change: @Sendable (inout PushDraft) -> Void

        init(
            _ check: String, _ reason: APNsReason?, _ what: String,
            _ change: @escaping @Sendable (inout PushDraft) -> Void
        ) {
            self.check = check
            self.reason = reason
            self.what = what
            self.change = change
        }

        var testDescription: String { "\(check): \(what)" }
    }

    static let cases: [Case] = [
        Case("method", nil, "POST") { _ in },
        Case("method", .methodNotAllowed, "GET") { $0.method = "GET" },
        Case("path", nil, "a token of 160 digits") { $0.path = "/3/device/" + String(repeating: "0a", count: 80) },
        Case("path", .badPath, "another version") { $0.path = "/2/device/\(Fixture.token)" },
        Case("path", .missingDeviceToken, "no token") { $0.path = "/3/device/" },
        Case("repeated headers", nil, "an unlisted header twice") {
            $0.append(Header("x-a", "1"))
            $0.append(Header("x-a", "2"))
        },
        Case("repeated headers", .duplicateHeaders, "the topic twice") {
            $0.append(Header("apns-topic", Fixture.bundle))
        },
        Case("id", nil, "none") { $0["apns-id"] = nil },
        Case("id", nil, "upper case") { $0["apns-id"] = Fixture.id.uppercased() },
        Case("id", .badMessageID, "without hyphens") { $0["apns-id"] = "123e4567e89b12d3a456426614174000" },
        Case("id", .badMessageID, "not hexadecimal") { $0["apns-id"] = "g23e4567-e89b-12d3-a456-426614174000" },
        Case("expiration", nil, "0") { $0["apns-expiration"] = "0" },
        Case("expiration", nil, "a date") { $0["apns-expiration"] = "1767229200" },
        Case("expiration", .badExpirationDate, "a fraction") { $0["apns-expiration"] = "1.5" },
        Case("expiration", .badExpirationDate, "negative") { $0["apns-expiration"] = "-1" },
        Case("priority", nil, "none") { $0["apns-priority"] = nil },
        Case("priority", nil, "1") { $0["apns-priority"] = "1" },
        Case("priority", .badPriority, "7") { $0["apns-priority"] = "7" },
        Case("push type", nil, "none") { $0["apns-push-type"] = nil },
        Case("push type", .invalidPushType, "unheard of") { $0["apns-push-type"] = "Alert" },
        Case("collapse id", nil, "64 bytes") { $0["apns-collapse-id"] = String(repeating: "c", count: 64) },
        Case("collapse id", .badCollapseID, "65 bytes") { $0["apns-collapse-id"] = String(repeating: "c", count: 65) },
        Case("collapse id", .badCollapseID, "33 characters of 2 bytes") {
            $0["apns-collapse-id"] = String(repeating: "é", count: 33)
        },
        Case("authorization", nil, "a valid provider token") { _ in },
        Case("authorization", .missingProviderToken, "none") { $0["authorization"] = nil },
        Case("authorization", .invalidProviderToken, "another scheme") { $0["authorization"] = "basic eA==" },
        Case("topic", nil, "a bundle id that ends like a suffix") { $0["apns-topic"] = "com.example.voip" },
        Case("topic", .missingTopic, "none") { $0["apns-topic"] = nil },
        Case("topic", .badTopic, "not a topic") { $0["apns-topic"] = "com example" },
        Case("topic", .topicDisallowed, "of another app") { $0["apns-topic"] = "com.example.other" },
        Case("type and topic", nil, "voip") { $0.type("voip", topic: "com.example.app.voip", "{}") },
        Case("type and topic", .topicDisallowed, "voip to the plain topic") { $0.type("voip", "{}") },
        Case("type and topic", .invalidPushType, "alert to a voip topic") { $0["apns-topic"] = "com.example.app.voip" },
        Case("background priority", nil, "5") {
            $0.type("background", #"{"aps":{"content-available":1}}"#)
            $0["apns-priority"] = "5"
        },
        Case("background priority", .badPriority, "10") { $0.type("background", #"{"aps":{"content-available":1}}"#) },
        Case("background priority", .badPriority, "absent, which means 10") {
            $0.type("background", #"{"aps":{"content-available":1}}"#)
            $0["apns-priority"] = nil
        },
        Case("size", nil, "4096 bytes") { $0.body = Self.body(of: 4096) },
        Case("size", .payloadTooLarge, "4097 bytes") { $0.body = Self.body(of: 4097) },
        Case("size", .payloadEmpty, "none") { $0.body = [] },
        Case("body", nil, "an object") { _ in },
        Case("body", .payloadEmpty, "not JSON") { $0.payload("{") },
        Case("body", .payloadEmpty, "not an object") { $0.payload("[]") },
        Case("payload", nil, "badge 0 only") { $0.payload(#"{"aps":{"badge":0}}"#) },
        Case("payload", .invalidPushType, "an alert that shows nothing") { $0.payload(#"{"aps":{}}"#) },
        Case("token", nil, "upper case") { $0.path = "/3/device/\(Fixture.token.uppercased())" },
        Case("token", .badDeviceToken, "not hexadecimal") { $0.path = "/3/device/zz01" },
        Case("token", .badDeviceToken, "odd length") { $0.path = "/3/device/012" },
        Case("token", .badDeviceToken, "all zeros") {
            $0.path = "/3/device/" + String(repeating: "0", count: 64)
        },
        Case("registration", nil, "unknown tokens are good") { $0.path = "/3/device/aa" },
        Case("registration", .badDeviceToken, "of the other environment") { $0.path = "/3/device/bb" },
        Case("registration", .deviceTokenNotForTopic, "of another topic") { $0.path = "/3/device/cc" },
    ]

    @Test(arguments: cases) func `a push is accepted or rejected with its reason`(_ one: Case) {
        let simulator = Fixture.simulator()
        simulator.state.pinnedTokens.register("bb", .init(environment: .development, topic: nil))
        simulator.state.pinnedTokens.register("cc", .init(environment: nil, topic: "com.example.app.voip"))
        let answer = simulator.push(.production, one.change)
        #expect(answer?.status == one.reason?.status ?? 200)
        #expect(answer?.reason == one.reason?.rawValue)
    }

    @Test func `every check has a passing and a failing case`() {
        for check in APNsCheck.all {
            let own = Self.cases.filter { $0.check == check.name }
            #expect(own.contains { $0.reason == nil } && own.contains { $0.reason != nil }, "\(check.name)")
        }
        #expect(Set(Self.cases.map(\.check)) == Set(APNsCheck.all.map(\.name)))
    }

    @Test func `the first failing check decides`() {
        let answer = Fixture.simulator().push {
            $0.path = "/3/device/zz"
            $0["authorization"] = nil
            $0["apns-priority"] = "7"
        }
        #expect(answer?.reason == "BadPriority")
        let second = Fixture.simulator().push {
            $0.path = "/3/device/zz"
            $0["authorization"] = nil
        }
        #expect(second?.reason == "MissingProviderToken")
    }

    @Test func `the response repeats the id, or generates one`() {
        let simulator = Fixture.simulator()
        #expect(simulator.push()?.headers["apns-id"] == Fixture.id)
        let made = simulator.push { $0["apns-id"] = nil }?.headers["apns-id"]
        #expect(made.map(APNsRequestValidator.isCanonicalUUID) == true)
        #expect(simulator.push { $0["apns-topic"] = nil }?.headers["apns-id"] == Fixture.id)
    }

    @Test func `only the sandbox sends apns-unique-id`() {
        #expect(Fixture.simulator().push(.production)?.headers["apns-unique-id"] == nil)
        #expect(Fixture.simulator().push(.development)?.headers["apns-unique-id"] != nil)
    }

    @Test func `an accepted push has an empty body and raises the stream limit once`() {
        let simulator = Fixture.simulator()
        let first = simulator.respondAPNs(Fixture.push(), in: .production)
        #expect(first.first == .limitStreams(1000))
        guard case .respond(let reply, _)? = first.last else { return #expect(Bool(false), "no answer") }
        #expect(reply.status == 200 && reply.body.isEmpty)
        let second = simulator.respondAPNs(Fixture.push(), in: .production)
        #expect(second.count == 1)
    }

    static func body(of size: Int) -> [UInt8] {
        let frame = #"{"aps":{"alert":{"body":""}}}"#
        return Array(
            #"{"aps":{"alert":{"body":""#.utf8) + [UInt8](repeating: 0x61, count: size - frame.utf8.count)
            + Array(#""}}}"#.utf8)
    }

    @Test func `a client certificate replaces the provider token for known topics, except for location pushes`() {
        let simulator = Fixture.simulator()
        func reason(_ change: (inout PushDraft) -> Void) -> String? {
            simulator.push {
                $0.hasClientCertificate = true
                $0["authorization"] = nil
                change(&$0)
            }?.reason
        }
        #expect(reason { _ in } == nil)
        #expect(reason { $0["authorization"] = "bearer nonsense" } == nil, "an authorization header is ignored")
        #expect(reason { $0["apns-topic"] = "com.example.other" } == "TopicDisallowed")
        #expect(reason { $0.type("location", topic: Fixture.bundle + ".location-query", "{}") } == "Forbidden")
        #expect(simulator.push { $0["authorization"] = nil }?.reason == "MissingProviderToken")
    }
}
