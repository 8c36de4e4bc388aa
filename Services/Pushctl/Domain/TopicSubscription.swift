import FoundationEssentials
import PushProtocol
import PushSending

/// Subscribing FCM registrations to a topic, over either of Google's APIs (`push-protocols` B.9), as pure functions.
struct TopicSubscription: Hashable, Sendable {
    enum Change: String, Hashable, Sendable {
        case subscribe, unsubscribe
    }

    /// One HTTP call, without its credential.
    struct Request: Hashable, Sendable {
        var method: String
        var url: String
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    /// What became of one registration.
    enum Answer: Hashable, Sendable {
        case done
        /// The registration is gone; a push to it says so too, and retires it.
        case gone
        case refused(String)
        /// Worth trying again later.
        case later(String)
        /// Our account or project is at fault: the same for all.
        case halted(String)
    }

    /// The most registrations that the legacy API takes in one call.
    static let maximumBatch = 1000
    static let legacyURL = "https://iid.googleapis.com"

    let change: Change
    let topic: String

    /// FCM v1: one call for each registration token or FID.
    func request(for token: DeviceToken, in project: String, at url: String) -> Request {
        let registration = "\(url)/v1/projects/\(project)/registrations/\(Self.encoded(token.secret))"
        let topic = Self.encoded(topic)
        return switch change {
        case .subscribe:
            Request(
                method: "POST", url: "\(registration)/topicSubscriptions?topic_name=\(topic)",
                headers: ["content-type": "application/json"], body: Array("{}".utf8))
        case .unsubscribe:
            Request(method: "DELETE", url: "\(registration)/topicSubscriptions/\(topic)?allow_missing=true")
        }
    }

    /// Reads FCM v1's answer. Who is subscribed already is subscribed.
    func answer(status: Int, body: [UInt8]) -> Answer {
        let word = ProviderResponse(status: status, body: body).json?[path: "error.status"]?.string
        switch status {
        case 200..<300, 409: return .done
        case 401: return .halted(Self.printable(word, status))
        case 404 where word == nil: return .halted("HTTP 404")
        default: return Self.answer(to: word ?? "", else: status >= 500 ? .later("HTTP \(status)") : nil)
        }
    }

    /// The Instance ID API: up to ``maximumBatch`` registration tokens a call; FIDs it does not know.
    func legacyRequest(for tokens: [DeviceToken], at url: String = legacyURL) -> Request {
        let verb =
            switch change {
            case .subscribe: "batchAdd"
            case .unsubscribe: "batchRemove"
            }
        let body: JSONValue = [
            "to": .string("/topics/\(topic)"), "registration_tokens": .array(tokens.map { .string($0.secret) }),
        ]
        return Request(
            method: "POST", url: "\(url)/iid/v1:\(verb)",
            headers: ["content-type": "application/json", "access_token_auth": "true"], body: JSONText.bytes(of: body))
    }

    /// Reads the Instance ID API's answer: one for each of `count` tokens, in their order.
    func legacyAnswers(status: Int, body: [UInt8], count: Int) -> [Answer] {
        let json = ProviderResponse(status: status, body: body).json
        guard status == 200, let results = json?["results"]?.array, results.count == count else {
            let word = json?["error"]?.string
            let whole: Answer =
                [401, 403, 404].contains(status)
                ? .halted(Self.printable(word, status))
                : Self.answer(to: word ?? "", else: .later("HTTP \(status)"))
            return Array(repeating: whole, count: count)
        }
        return results.map { $0["error"]?.string.map { Self.answer(to: $0) } ?? .done }
    }

    /// What both APIs mean by a word.
    private static func answer(to word: String, else otherwise: Answer? = nil) -> Answer {
        switch word {
        case "NOT_FOUND": .gone
        case "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN", "UNAVAILABLE": .later(word)
        case "PERMISSION_DENIED", "UNAUTHENTICATED": .halted(word)
        default: otherwise ?? .refused(ProviderWord.printable(word))
        }
    }

    private static func printable(_ word: String?, _ status: Int) -> String {
        word.map(ProviderWord.printable) ?? "HTTP \(status)"
    }

    /// A path segment: everything but RFC 3986's unreserved characters is percent-encoded.
    private static func encoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { encoded, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }
}
