import PushProtocol
import TestSupport
import Testing

@testable import Providers

/// The table of ProviderFacts.md §F.5.
@Suite struct WebPushResponseTests {
    private static let old = Duration.seconds(600)

    private static func consequence(
        _ status: Int, _ body: String = "", headers: [String: String] = [:], credentialAge: Duration = .zero
    ) -> Consequence {
        WebPushCodec(origin: "https://push.example.net", site: try! WebPushSite("https://app.example/")).consequence(
            of: ProviderResponse(status: status, headers: headers, body: Array(body.utf8)),
            to: ResponseContext(target: .sample(), now: .sample, credentialAge: credentialAge))
    }

    static let table: [(Int, String, Consequence)] = [
        (200, "", .settle(.accepted(id: nil))), (201, "", .settle(.accepted(id: nil))),
        (202, "", .settle(.accepted(id: nil))), (204, "", .settle(.accepted(id: nil))),
        (301, "", .settle(.rejected(reason: "HTTP 301", suspectToken: true))),
        (302, "", .settle(.rejected(reason: "HTTP 302", suspectToken: true))),
        (307, "", .settle(.rejected(reason: "HTTP 307", suspectToken: true))),
        (400, "", .settle(.rejected(reason: "HTTP 400", suspectToken: false))),
        (
            400, #"{"reason":"BadWebPushTopic"}"#,
            .settle(.rejected(reason: "BadWebPushTopic", suspectToken: false))
        ),
        (
            400, #"{"reason":"VapidPkHashMismatch"}"#,
            .settle(.rejected(reason: "VapidPkHashMismatch", suspectToken: true))
        ),
        (401, #"{"code":401,"errno":109,"message":"expired"}"#, .halt(reason: "errno-109")),
        (
            401, #"{"code":401,"errno":109,"message":"VAPID public key mismatch"}"#,
            .settle(.rejected(reason: "errno-109", suspectToken: true))
        ),
        (403, #"{"reason":"BadJwtToken"}"#, .halt(reason: "BadJwtToken")), (403, "", .halt(reason: "HTTP 403")),
        (
            403,
            "the VAPID credentials in the authorization header do not correspond to the credentials used to create "
                + "the subscriptions.", .settle(.rejected(reason: "HTTP 403", suspectToken: true))
        ),
        (404, "", .settle(.unregistered(since: nil, reason: "HTTP 404"))),
        (404, #"{"errno":102}"#, .settle(.unregistered(since: nil, reason: "errno-102"))),
        (405, "", .settle(.rejected(reason: "HTTP 405", suspectToken: false))),
        (406, "", .backOff(floor: .seconds(60), reason: "HTTP 406")),
        (408, "", .backOff(floor: .seconds(10), reason: "HTTP 408")),
        (410, "", .settle(.unregistered(since: nil, reason: "HTTP 410"))),
        (410, #"{"errno":106}"#, .settle(.unregistered(since: nil, reason: "errno-106"))),
        (410, #"{"reason":"Unregistered"}"#, .settle(.unregistered(since: nil, reason: "Unregistered"))),
        (413, "", .settle(.rejected(reason: "HTTP 413", suspectToken: false))),
        (425, "", .backOff(floor: .seconds(10), reason: "HTTP 425")),
        (429, "", .backOff(floor: .seconds(60), reason: "HTTP 429")),
        (500, "<html>", .backOff(floor: .seconds(10), reason: "HTTP 500")),
        (502, "", .backOff(floor: .seconds(10), reason: "HTTP 502")),
        (503, #"{"reason":"ServiceUnavailable"}"#, .backOff(floor: .seconds(10), reason: "ServiceUnavailable")),
        (599, "", .backOff(floor: .seconds(10), reason: "HTTP 599")),
    ]

    @Test(arguments: table) func `an answer has the consequence of the table`(
        status: Int, body: String, consequence: Consequence
    ) {
        #expect(Self.consequence(status, body) == consequence)
    }

    @Test(arguments: [(429, "120", 120), (429, "1", 10), (503, "30", 30), (406, "90", 90), (429, "soon", 60)])
    func `retry-after pauses the push service, and no shorter than the minimum`(
        status: Int, header: String, seconds: Int
    ) {
        #expect(
            Self.consequence(status, headers: ["retry-after": header])
                == .backOff(floor: .seconds(seconds), reason: "HTTP \(status)"))
    }

    @Test func `retry-after may be a date`() {
        #expect(
            Self.consequence(429, headers: ["retry-after": "Thu, 01 Jan 2026 00:05:00 GMT"])
                == .backOff(floor: .seconds(300), reason: "HTTP 429"))
    }

    @Test func `given an old VAPID token, a refusal asks for a new one, and given a new token it halts`() {
        for status in [401, 403] {
            #expect(
                Self.consequence(status, credentialAge: Self.old) == .reauthenticate(reason: "HTTP \(status)"))
            #expect(
                Self.consequence(status, credentialAge: Self.old - .seconds(1)) == .halt(reason: "HTTP \(status)"))
        }
        #expect(
            Self.consequence(403, #"{"reason":"VapidPkHashMismatch"}"#, credentialAge: Self.old)
                == .settle(.rejected(reason: "VapidPkHashMismatch", suspectToken: true)))
    }

    @Test func `the message's id is Apple's, and never the location, which is a capability`() {
        #expect(
            Self.consequence(201, headers: ["location": "https://push.example.net/m/secret", "apns-id": "A1B2"])
                == .settle(.accepted(id: ProviderMessageID("A1B2"))))
        #expect(
            Self.consequence(201, headers: ["location": "https://push.example.net/m/secret"])
                == .settle(.accepted(id: nil)))
    }

    @Test func `texts of a push service are limited and sanitized`() {
        let wild = "A\\n b" + String(repeating: "x", count: 1000)
        #expect(
            Self.consequence(400, #"{"reason":"\#(wild)"}"#)
                == .settle(.rejected(reason: "Ab" + String(repeating: "x", count: 62), suspectToken: false)))
        #expect(
            Self.consequence(400, #"{"reason":"  "}"#)
                == .settle(.rejected(reason: "HTTP 400", suspectToken: false)))
    }

    @Test func `no answer below 200 or between the known ones is without a consequence that ends`() {
        for status in 200..<600 {
            switch Self.consequence(status) {
            case .settle, .backOff, .halt: break
            default: Issue.record("\(status)")
            }
        }
    }

    @Test func `after a refusal of all requests, the rest of the batch is not sent`() {
        let codec = WebPushCodec(origin: "https://push.example.net", site: try! WebPushSite("https://app.example/"))
        #expect([401, 403, 429].allSatisfy { !codec.shouldContinue(after: $0) })
        #expect([201, 400, 404, 410, 413, 500].allSatisfy { codec.shouldContinue(after: $0) })
    }
}
