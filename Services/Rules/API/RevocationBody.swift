import DecisionLog
import FoundationEssentials
import PushProtocol

/// The body of `POST /v1/operator/revocations`.
///
///     {"app": "family-portal", "event": "chat-123", "reason": "wrong text"}
///     {"app": "family-portal", "notification": "5b0c…", "user": "457", "inbox": "keep"}
struct RevocationBody: Hashable, Sendable {
    /// The largest accepted body, in bytes.
    static let maximumSize = 16 * 1024

    var request: RevocationRequest

    init(_ body: [UInt8]) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let members = try JSONObjectReader(
            value, at: "the body", prefix: "",
            known: ["app", "event", "notification", "user", "inbox", "reason", "ahead"])
        guard let app = members["app"]?.string.flatMap({ AppID(rawValue: $0) }) else {
            throw .invalid(path: "app", problem: "expected an app id")
        }
        let isAhead = try members.flag("ahead") ?? false
        let keys = Set((value.object ?? [:]).keys)
        request = RevocationRequest(app: app, target: try Self.target(members, keys), isAhead: isAhead)
        let inbox = try members.optional("inbox", "expected “remove” or “keep”") { value in
            value.string.flatMap(Revocation.Inbox.init(rawValue:))
        }
        if let inbox { request.inbox = inbox }
        request.user = try members.optional("user", "expected a user id") { value in
            value.string.flatMap(UserID.init(rawValue:))
        }
        request.reason = try members.freeText("reason", RevocationRequest.maximumReason)
        if keys.contains("ahead"), case .notification = request.target {
            throw .invalid(path: "ahead", problem: "only an event can be revoked before it arrives")
        }
    }

    /// - Parameter keys: the present members, also those with the value `null`.
    private static func target(
        _ members: JSONObjectReader, _ keys: Set<String>
    ) throws(WireError) -> RevocationRequest.Target {
        switch (keys.contains("event"), keys.contains("notification")) {
        case (true, false):
            guard let id = members["event"]?.string, CloudEvents.isID(id) else {
                throw .invalid(
                    path: "event",
                    problem: "expected an event's id of 1–\(CloudEvents.maximumNameLength) bytes without controls")
            }
            return .event(id)
        case (false, true):
            guard let id = members["notification"]?.string.flatMap({ UUID(uuidString: $0) }) else {
                throw .invalid(path: "notification", problem: "expected a notification's id, a UUID")
            }
            return .notification(id)
        case (true, true), (false, false):
            throw .invalid(path: "the body", problem: "expected event or notification, and not both")
        }
    }
}
