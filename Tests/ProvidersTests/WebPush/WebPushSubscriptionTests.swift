import PushProtocol
import Testing

@testable import Providers

/// Subscriptions as browsers give them, and endpoints that must not be reached.
@Suite struct WebPushSubscriptionTests {
    private static func problem(_ json: JSONValue) -> String? {
        do {
            _ = try WebPushSubscription(json)
            return nil
        } catch {
            return error.description
        }
    }

    private static func problem(endpoint: String) throws -> String? {
        var browser = try Browser.sample()
        browser.endpoint = endpoint
        return problem(browser.json)
    }

    @Test func `a subscription of a browser is read, and its text is read again`() throws {
        var json = try Browser.sample().json.merging(["expirationTime": 1_767_225_600_123, "extra": true])
        let subscription = try WebPushSubscription(json)
        #expect(subscription.endpoint.origin == "https://push.example.net")
        #expect(subscription.endpoint.path == "/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV?v=1")
        #expect(subscription.expiresAt == Timestamp(milliseconds: 1_767_225_600_123))
        #expect(subscription.authSecret == Array(100...115))
        #expect(try WebPushSubscription(text: subscription.text) == subscription)
        json = json.merging(["expirationTime": .double(1_767_225_600_123.75)])
        #expect(try WebPushSubscription(json) == subscription)
    }

    @Test func `the text has no time when the browser has none`() throws {
        let subscription = try Browser.sample().subscription()
        #expect(subscription.expiresAt == nil)
        #expect(
            subscription.text
                == #"{"endpoint":"https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV?v=1","#
                + #""keys":{"auth":"ZGVmZ2hpamtsbW5vcHFycw","p256dh":"BFFcPW6545a5BNP-yn9U_c0MwemXvzddylFa0KbDtANf"#
                + #"RTa-OlDzGPv5pUdZAqIhUCvvDVfgjFOyzApW8X2fk1Q"}}"#)
    }

    @Test func `descriptions contain no secret`() throws {
        let subscription = try Browser.sample().subscription()
        for text in ["\(subscription)", "\(subscription.endpoint)", String(reflecting: subscription)] {
            #expect(!text.contains("JzLQ3raZ") && !text.contains("ZGVmZ2hpamtsbW5vcHFycw"))
        }
        var dumped = ""
        dump(subscription, to: &dumped)
        #expect(!dumped.contains("JzLQ3raZ") && !dumped.contains("100"))
    }

    @Test(arguments: [
        ("[]", "the subscription is not an object"), ("7", "the subscription is not an object"),
        ("{", "the subscription is not JSON"), ("{}", "endpoint: it is missing or not a string"),
        (#"{"endpoint":5}"#, "endpoint: it is missing or not a string"),
        (#"{"endpoint":"https://push.example.net/x"}"#, "keys.p256dh: it is missing or not a string"),
    ]) func `a text that is no subscription has a fault and a next step`(text: String, fault: String) {
        let problem = #expect(throws: WebPushSubscription.Problem.self) { try WebPushSubscription(text: text) }
        #expect(problem?.description == "\(fault); send the result of PushSubscription.toJSON() unchanged")
    }

    @Test func `wrong keys are named`() throws {
        let json = try Browser.sample().json
        func problem(_ name: String, _ value: JSONValue) -> String {
            String(Self.problem(json.merging(["keys": [name: value]]))?.prefix { $0 != ";" } ?? "")
        }
        #expect(problem("auth", nil) == "keys.auth: it is missing or not a string")
        #expect(problem("auth", "ZGVmZ2hpamtsbW5vcHFycw==") == "keys.auth: it is not base64url without padding")
        #expect(problem("auth", "ZGVm Z2hpamtsbW5vcHFycw") == "keys.auth: it is not base64url without padding")
        #expect(problem("auth", "ZGVmZ2hpamtsbW5vcHFy") == "keys.auth: it has 15 bytes instead of 16")
        #expect(problem("p256dh", "BA") == "keys.p256dh: it has 1 bytes instead of 65")
        // A compressed point, and a point that is not on the curve.
        let noPoint = Base64URL.text(of: [4] + [UInt8](repeating: 1, count: 64))
        #expect(problem("p256dh", .string(noPoint)) == "keys.p256dh: it is not a point of the curve P-256")
        let compressed = Base64URL.text(of: [2] + [UInt8](repeating: 1, count: 64))
        #expect(problem("p256dh", .string(compressed)) == "keys.p256dh: it is not a point of the curve P-256")
    }

    @Test(arguments: ["soon", true, .double(1e300), []] as [JSONValue])
    func `an expiration that is no time is refused`(value: JSONValue) throws {
        let problem = Self.problem(try Browser.sample().json.merging(["expirationTime": value]))
        #expect(problem?.hasPrefix("expirationTime: it is neither null nor milliseconds since 1970; ") == true)
    }

    @Test(arguments: [
        ("https://fcm.googleapis.com/fcm/send/abc:def", "https://fcm.googleapis.com", "/fcm/send/abc:def"),
        (
            "https://UPDATES.push.services.mozilla.com/wpush/v2/g", "https://updates.push.services.mozilla.com",
            "/wpush/v2/g"
        ),
        ("https://web.push.apple.com", "https://web.push.apple.com", "/"),
        ("https://push.example.net?x=1", "https://push.example.net", "/?x=1"),
        ("https://push.example.net:443/a", "https://push.example.net", "/a"),
        ("https://push.example.net:8443/a", "https://push.example.net:8443", "/a"),
        ("https://93.184.216.34/a", "https://93.184.216.34", "/a"),
        ("https://[2606:2800:220:1:248:1893:25c8:1946]/a", "https://[2606:2800:220:1:248:1893:25c8:1946]", "/a"),
    ]) func `an endpoint is divided into origin and path`(text: String, origin: String, path: String) throws {
        let endpoint = try WebPushEndpoint(text)
        #expect(endpoint.origin == origin)
        #expect(endpoint.path == path)
    }

    /// The whole corpus is in OutboundURLTests; these are its kinds.
    @Test(arguments: [
        "http://push.example.net/x", "ftp://push.example.net/x", "https://user:pw@push.example.net/x",
        "https://push.example.net:22/x", "https://push.example.net/x#y", "https://10.0.0.1/x", "https://127.0.0.1/x",
        "https://169.254.169.254/latest/meta-data", "https://[::1]/x", "https://[::ffff:10.0.0.1]/x",
        "https://[fd00::1]/x", "https://2130706433/x", "https://0x7f.1/x", "https://localhost/x",
        "https://db.internal/x", "https://printer.local/x", "https://push/x", "https://%31.0.0.1/x", "https:///x",
        "http://127.0.0.1:9000/x", "", "push.example.net/x",
    ]) func `an endpoint outside of the internet is refused, with the member and the next step`(text: String) throws {
        let problem = try #require(try Self.problem(endpoint: text))
        #expect(problem.hasPrefix("endpoint: "))
        #expect(problem.hasSuffix("; send the result of PushSubscription.toJSON() unchanged"))
        #expect(!problem.contains("meta-data"), "a path may be a secret")
    }

    @Test(arguments: ["https://permanently-removed.invalid/fcm/send/abc", "https://x.invalid/"])
    func `an endpoint of a browser without push service is refused`(text: String) throws {
        let problem = try #require(try Self.problem(endpoint: text))
        #expect(problem.contains("is no push service; this browser cannot receive pushes"))
        #expect(throws: (any Error).self) { try WebPushEndpoint(text, policy: .init(privateNetworks: true)) }
    }

    @Test func `given the setting, private networks are destinations, and metadata services are not`() throws {
        let policy = WebPushEndpoint.Policy(privateNetworks: true)
        for text in ["https://push/x", "https://localhost:8443/x", "https://10.0.0.1/x", "https://[::1]:9000/x"] {
            _ = try WebPushEndpoint(text, policy: policy)
        }
        for text in ["https://169.254.169.254/x", "http://localhost:9000/x", "https://[::ffff:10.0.0.1]/x"] {
            #expect(throws: (any Error).self) { try WebPushEndpoint(text, policy: policy) }
        }
    }

    @Test func `given a name that resolves to a private address, the connection is refused`() throws {
        let endpoint = try WebPushEndpoint("https://rebinding.example.net/x")
        #expect(endpoint.accepts(address: [93, 184, 216, 34]))
        for address: [UInt8] in [
            [127, 0, 0, 1], [10, 0, 0, 1], [169, 254, 169, 254], [100, 64, 0, 1], [0, 0, 0, 0], [224, 0, 0, 1],
            Array(repeating: 0, count: 15) + [1], Array(repeating: 0, count: 10) + [0xFF, 0xFF, 10, 0, 0, 1],
            [0xFD] + Array(repeating: 0, count: 15), [0xFE, 0x80] + Array(repeating: 0, count: 14), [], [1, 2, 3],
        ] { #expect(!endpoint.accepts(address: address), "\(address)") }
        let own = try WebPushEndpoint("https://push.example.net/x", policy: .init(privateNetworks: true))
        #expect(own.accepts(address: [10, 0, 0, 1]))
        #expect(!own.accepts(address: [169, 254, 169, 254]))
    }
}
