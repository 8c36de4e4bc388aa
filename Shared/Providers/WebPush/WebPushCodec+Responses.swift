import PushProtocol
import FoundationEssentials

extension WebPushCodec {
    /// The minimum wait before a retry.
    static let floor = Duration.seconds(10)
    /// The wait after a 429 without `retry-after`: Chrome's limits count by the minute.
    static let floorAfterTooMany = Duration.seconds(60)
    /// The minimum age of a token that can have expired or have another key. A younger one means a wrong key or clock.
    static let youngestStaleToken = Duration.seconds(600)

    /// The table of ProviderFacts.md §F.5.
    package func consequence(of response: ProviderResponse, to sent: ResponseContext) -> Consequence {
        let said = WebPushReason(response)
        let reason = said.text
        let retryAfter = RetryAfter.delay(response.headers["retry-after"], now: sent.now).map { max($0, Self.floor) }
        switch response.status {
        case 200..<300:
            // `location` names the message too, but it permits deletion of the message (RFC 8030 §5).
            let id = response.headers["apns-id"].map { ProviderMessageID(SanitizedReason.printable($0)) }
            return .settle(.accepted(id: id))
        // A redirect is never followed: its target is not checked, and the VAPID token is for this origin.
        case 300..<400: return .settle(.rejected(reason: reason, suspectToken: true))
        case 404, 410: return .settle(.unregistered(since: nil, reason: reason))
        case 400 where said.isAboutKeyOfSubscription, 401 where said.isAboutKeyOfSubscription,
            403 where said.isAboutKeyOfSubscription:
            return .settle(.rejected(reason: reason, suspectToken: true))
        case 401, 403:
            return sent.credentialAge < Self.youngestStaleToken
                ? .halt(reason: reason) : .reauthenticate(reason: reason)
        // Windows Push Notification Services answer 406 where others answer 429.
        case 406, 429: return .backOff(floor: retryAfter ?? Self.floorAfterTooMany, reason: reason)
        case 408, 425, 500...: return .backOff(floor: retryAfter ?? Self.floor, reason: reason)
        case 400..<500: return .settle(.rejected(reason: reason, suspectToken: false))
        // HTTP/2 delivers no other status as a response.
        default: return .backOff(floor: Self.floor, reason: reason)
        }
    }
}

/// The words of a push service about a refused request: Apple's `reason`, Mozilla's `errno`, Google's text
/// (ProviderFacts.md §F.5).
struct WebPushReason: Hashable, Sendable {
    let text: String
    /// Whether the subscription was made for another VAPID key. This says nothing about other subscriptions.
    let isAboutKeyOfSubscription: Bool

    init(_ response: ProviderResponse) {
        let json = response.json
        let number = json?["errno"]?.int
        let spelled = json?["reason"]?.string ?? number.map { "errno-\($0)" }
        let printable = spelled.map(SanitizedReason.printable) ?? ""
        text = printable.isEmpty ? "HTTP \(response.status)" : printable
        isAboutKeyOfSubscription = Self.mismatches(
            reason: json?["reason"]?.string, message: json?["message"]?.string, body: response.body)
    }

    private static func mismatches(reason: String?, message: String?, body: [UInt8]) -> Bool {
        if reason == "VapidPkHashMismatch" { return true }
        if message?.contains("VAPID public key mismatch") ?? false { return true }
        return String(decoding: body.prefix(1024), as: UTF8.self)
            .contains("do not correspond to the credentials used to create the subscription")
    }
}
