import PushProtocol
import Testing
import TestSupport

@testable import Providers

/// The FCM response vectors and the table of ProviderFacts.md §B.7.
@Suite struct FCMResponseVectorTests {
    private let codec = FCMCodec(project: "demo-project")

    private func consequence(
        _ status: Int, _ body: JSONValue?, headers: [String: String] = [:]
    ) -> Consequence {
        let bytes = body.map(JSONText.bytes) ?? []
        return codec.consequence(
            of: ProviderResponse(status: status, headers: headers, body: bytes),
            to: ResponseContext(target: .sample(), now: .sample, credentialAge: .zero))
    }

    @Test func `texts of Google and Apple are limited and sanitized`() {
        let wild = "A\n\u{0}b " + String(repeating: "x", count: 1000)
        let tame = "Ab" + String(repeating: "x", count: 62)
        #expect(consequence(200, ["name": .string("p/\(wild)")]) == .settle(.accepted(id: ProviderMessageID(tame))))
        #expect(consequence(403, ["error": ["status": .string(wild)]]) == .halt(reason: tame))
        #expect(
            consequence(400, Self.envelope("INVALID_ARGUMENT", Self.code("INVALID_ARGUMENT"), Self.apple(400, wild)))
                == .settle(.rejected(reason: tame, suspectToken: false)))
        #expect(
            consequence(
                401, Self.envelope("UNAUTHENTICATED", Self.code("THIRD_PARTY_AUTH_ERROR"), Self.apple(403, wild)))
                == .waitForThirdParty(reason: tame))
    }

    /// A Google error response with these details, in this order.
    private static func envelope(
        _ status: String, _ details: JSONValue..., message: String = "said"
    ) -> JSONValue {
        ["error": ["code": 0, "message": .string(message), "status": .string(status), "details": .array(details)]]
    }

    private static func code(_ code: String) -> JSONValue {
        ["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code)]
    }

    private static func apple(_ status: Int64, _ reason: String) -> JSONValue {
        [
            "@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "statusCode": .int(status),
            "reason": .string(reason),
        ]
    }

    private static func violation(_ field: String) -> JSONValue {
        ["@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [["field": .string(field)]]]
    }

    static let vectors: [(String, Int, JSONValue?, Consequence)] = [
        (
            "G01", 200, ["name": "projects/demo-project/messages/0:15%31bd"],
            .settle(.accepted(id: "0:15%31bd"))
        ),
        (
            "G02", 404, envelope("NOT_FOUND", code("UNREGISTERED")),
            .settle(.unregistered(since: nil, reason: "UNREGISTERED"))
        ),
        (
            "G03", 400, envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT"), violation("message.token")),
            .settle(.unregistered(since: nil, reason: "INVALID_ARGUMENT"))
        ),
        (
            "G03 by its sentence", 400,
            envelope(
                "INVALID_ARGUMENT", code("INVALID_ARGUMENT"),
                message: "The registration token is not a valid FCM registration token"),
            .settle(.unregistered(since: nil, reason: "INVALID_ARGUMENT"))
        ),
        (
            "G04", 400, envelope("INVALID_ARGUMENT", violation("message.data[0].value")),
            .settle(.rejected(reason: "INVALID_ARGUMENT", suspectToken: false))
        ),
        (
            "a bad payload is not the token's fault though both are named", 400,
            envelope(
                "INVALID_ARGUMENT", code("INVALID_ARGUMENT"), violation("message.token"),
                violation("message.android.ttl")),
            .settle(.rejected(reason: "INVALID_ARGUMENT", suspectToken: false))
        ),
        (
            "no usable detail", 400, envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT")),
            .settle(.rejected(reason: "INVALID_ARGUMENT", suspectToken: true))
        ),
        (
            "G05", 400, envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT"), apple(410, "Unregistered")),
            .settle(.unregistered(since: nil, reason: "Unregistered"))
        ),
        (
            "G05 in another order", 400,
            envelope("INVALID_ARGUMENT", apple(410, "Unregistered"), code("INVALID_ARGUMENT")),
            .settle(.unregistered(since: nil, reason: "Unregistered"))
        ),
        (
            "Apple finds the payload too large", 400,
            envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT"), apple(413, "PayloadTooLarge")),
            .settle(.rejected(reason: "PayloadTooLarge", suspectToken: false))
        ),
        (
            "Apple refuses Firebase's key", 400,
            envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT"), apple(403, "InvalidProviderToken")),
            .settle(.misconfigured(reason: "InvalidProviderToken"))
        ),
        (
            "Apple says something new", 400,
            envelope("INVALID_ARGUMENT", code("INVALID_ARGUMENT"), apple(400, "FutureReason")),
            .settle(.rejected(reason: "FutureReason", suspectToken: false))
        ),
        (
            "G06", 403, envelope("PERMISSION_DENIED", code("SENDER_ID_MISMATCH")),
            .settle(.rejected(reason: "SENDER_ID_MISMATCH", suspectToken: true))
        ),
        ("G07", 403, envelope("PERMISSION_DENIED"), .halt(reason: "PERMISSION_DENIED")),
        ("G08", 401, envelope("UNAUTHENTICATED"), .reauthenticate(reason: "UNAUTHENTICATED")),
        (
            "G09", 401,
            envelope("UNAUTHENTICATED", code("THIRD_PARTY_AUTH_ERROR"), apple(403, "InvalidProviderToken")),
            .waitForThirdParty(reason: "InvalidProviderToken")
        ),
        (
            "G09 by its old name", 401, envelope("UNAUTHENTICATED", code("APNS_AUTH_ERROR")),
            .waitForThirdParty(reason: "APNS_AUTH_ERROR")
        ),
        (
            "G11", 429, envelope("RESOURCE_EXHAUSTED", code("QUOTA_EXCEEDED")),
            .throttle(floor: .seconds(60), reason: "QUOTA_EXCEEDED")
        ),
        ("G13", 500, envelope("INTERNAL", code("INTERNAL")), .backOff(floor: .seconds(10), reason: "INTERNAL")),
        ("G14", 502, nil, .backOff(floor: .seconds(10), reason: "HTTP 502")),
        ("G15", 404, envelope("NOT_FOUND"), .halt(reason: "NOT_FOUND")),
        ("G15 without a body", 404, nil, .halt(reason: "HTTP 404")),
        (
            "a code newer than this build", 400, envelope("FAILED_PRECONDITION", code("FUTURE_CODE")),
            .settle(.rejected(reason: "FUTURE_CODE", suspectToken: false))
        ),
        (
            "a 401 is about the access token, whatever the code", 401,
            envelope("UNAUTHENTICATED", code("FUTURE_CODE")), .reauthenticate(reason: "FUTURE_CODE")
        ),
        (
            "a 401 is never about the token", 401, envelope("UNAUTHENTICATED", code("INVALID_ARGUMENT")),
            .reauthenticate(reason: "INVALID_ARGUMENT")
        ),
        (
            "no information, server's fault", 500, envelope("UNKNOWN", code("UNSPECIFIED_ERROR")),
            .backOff(floor: .seconds(10), reason: "UNSPECIFIED_ERROR")
        ),
        (
            "no information, our fault", 400, envelope("UNKNOWN", code("UNSPECIFIED_ERROR")),
            .settle(.rejected(reason: "UNSPECIFIED_ERROR", suspectToken: false))
        ),
    ]

    @Test(arguments: vectors.indices) func `every response has one consequence`(index: Int) {
        let (name, status, body, expected) = Self.vectors[index]
        #expect(consequence(status, body) == expected, "\(name)")
    }

    @Test func `G10 G12: retry-after is accepted in both forms, with a minimum`() {
        let quota = Self.envelope("RESOURCE_EXHAUSTED", Self.code("QUOTA_EXCEEDED"))
        #expect(
            consequence(429, quota, headers: ["retry-after": "120"])
                == .throttle(floor: .seconds(120), reason: "QUOTA_EXCEEDED"))
        #expect(
            consequence(429, quota, headers: ["retry-after": "1"])
                == .throttle(floor: .seconds(10), reason: "QUOTA_EXCEEDED"))
        #expect(
            consequence(429, quota, headers: ["retry-after": "0"])
                == .throttle(floor: .seconds(60), reason: "QUOTA_EXCEEDED"))
        let away = Self.envelope("UNAVAILABLE", Self.code("UNAVAILABLE"))
        #expect(
            consequence(503, away, headers: ["retry-after": "Thu, 01 Jan 2026 00:00:45 GMT"])
                == .backOff(floor: .seconds(45), reason: "UNAVAILABLE"))
    }

    @Test(arguments: APNsReason.allCases) func `no reason of Apple halts Android`(reason: APNsReason) {
        let body = Self.envelope("INVALID_ARGUMENT", Self.code("INVALID_ARGUMENT"), Self.apple(400, reason.rawValue))
        switch consequence(400, body) {
        case .settle, .backOff, .throttle: break
        case .halt, .reauthenticate, .reconnect, .reconnectAndBackOff, .waitForThirdParty:
            Issue.record("\(reason) reaches beyond its own target")
        }
    }

    @Test(arguments: FCMErrorCode.allCases) func `only three codes count against a token`(code: FCMErrorCode) {
        let body = Self.envelope("X", Self.code(code.rawValue))
        let isAgainst =
            switch consequence(400, body) {
            case .settle(.unregistered), .settle(.rejected(_, suspectToken: true)): true
            default: false
            }
        #expect(isAgainst == [.unregistered, .senderIDMismatch, .invalidArgument].contains(code))
    }
}
