import Foundation
import Providers
import PushProtocol

/// Requests and responses of FCM topic subscriptions, for both Google APIs (ProviderFacts.md §B.9).
struct TopicSubscription: Hashable, Sendable {
    enum Change: String, Hashable, Sendable {
        case subscribe, unsubscribe
    }

    /// An HTTP request without authorization.
    struct Request: Hashable, Sendable {
        var method: String
        var url: String
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    enum SubscriptionResult: Hashable, Sendable {
        case done
        /// The registration no longer exists; the next push to it deactivates it.
        case unregistered
        case refused(String)
        /// Retry later.
        case retryable(String)
        /// The account or project is misconfigured; all registrations are affected.
        case misconfigured(String)
    }

    /// The maximum registrations in one legacy call.
    static let maximumBatch = 1000
    static let legacyURL = "https://iid.googleapis.com"

    let change: Change
    let topic: String

    /// FCM v1: one request per registration token or FID.
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

    /// Parses an FCM v1 response. An existing subscription counts as success.
    func answer(status: Int, body: [UInt8]) -> SubscriptionResult {
        let word = ProviderResponse(status: status, body: body).json?[path: "error.status"]?.string
        switch status {
        case 200..<300, 409: return .done
        case 401: return .misconfigured(Self.printable(word, status))
        case 404 where word == nil: return .misconfigured("HTTP 404")
        default: return Self.answer(to: word ?? "", else: status >= 500 ? .retryable("HTTP \(status)") : nil)
        }
    }

    /// The Instance ID API: up to ``maximumBatch`` registration tokens per request, no FIDs.
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

    /// Parses an Instance ID response: one result for each of `count` tokens, in order.
    func legacyAnswers(status: Int, body: [UInt8], count: Int) -> [SubscriptionResult] {
        let json = ProviderResponse(status: status, body: body).json
        guard status == 200, let results = json?["results"]?.array, results.count == count else {
            let word = json?["error"]?.string
            let whole: SubscriptionResult =
                [401, 403, 404].contains(status)
                ? .misconfigured(Self.printable(word, status))
                : Self.answer(to: word ?? "", else: .retryable("HTTP \(status)"))
            return Array(repeating: whole, count: count)
        }
        return results.map { $0["error"]?.string.map { Self.answer(to: $0) } ?? .done }
    }

    /// The meaning of an error code in both APIs.
    private static func answer(to word: String, else otherwise: SubscriptionResult? = nil) -> SubscriptionResult {
        switch word {
        case "NOT_FOUND": .unregistered
        case "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN", "UNAVAILABLE": .retryable(word)
        case "PERMISSION_DENIED", "UNAUTHENTICATED": .misconfigured(word)
        default: otherwise ?? .refused(SanitizedReason.printable(word))
        }
    }

    private static func printable(_ word: String?, _ status: Int) -> String {
        word.map(SanitizedReason.printable) ?? "HTTP \(status)"
    }

    /// Percent-encodes a path segment: everything but RFC 3986 unreserved characters.
    private static func encoded(_ text: String) -> String {
        let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
        return text.addingPercentEncoding(withAllowedCharacters: CharacterSet(charactersIn: unreserved)) ?? ""
    }
}
