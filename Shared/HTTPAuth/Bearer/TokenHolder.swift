package import PushProtocol
import ServiceKit

/// The kinds of callers with a bearer token. No token is valid for both: a publisher's token has a scope that allows
/// publishing, and a user's token must not have one, whatever key signed it.
package enum TokenHolder: Hashable, Sendable, CaseIterable {
    case user
    case publisher

    /// The list of the holder's keys in the apps file.
    package var member: String {
        switch self {
        case .user: "bearer"
        case .publisher: "publishers"
        }
    }

    func verifications(of app: AppConfiguration) -> [BearerVerification] {
        switch self {
        case .user: app.bearer
        case .publisher: app.publishers
        }
    }

    /// Checks that the claims are those of this kind of holder.
    func check(_ claims: JSONValue, of app: AppID) throws(BearerTokenError) {
        switch self {
        case .user:
            guard PublisherScope.operations(in: claims).isEmpty else {
                throw BearerTokenError(.publisherToken, app: app)
            }
        case .publisher:
            guard PublisherScope(claims) != nil else { throw BearerTokenError(.noScope, app: app) }
        }
    }
}

package struct VerifiedToken: Hashable, Sendable {
    package let caller: Caller
    package let claims: JSONValue
}

/// The permissions in a publisher's token: the claims `scope` and `event_types`.
package struct PublisherScope: Hashable, Sendable {
    /// The operations that a token can allow.
    package static let operations: Set<APIKey.Operation> = [.publishEvents, .sendNotifications]

    /// Not empty.
    package let operations: Set<APIKey.Operation>
    /// The allowed types of events, and beginnings of types that end with a dot; nil for every type. Limits
    /// `events:publish` only.
    package let eventTypes: [String]?

    /// Reads the claims; nil if they allow nothing, or `event_types` is not an array of non-empty strings.
    package init?(_ claims: JSONValue) {
        operations = Self.operations(in: claims)
        guard !operations.isEmpty else { return nil }
        switch claims["event_types"] {
        case nil: eventTypes = nil
        case .array(let values):
            let types = values.compactMap(\.string).filter { !$0.isEmpty }
            guard types.count == values.count else { return nil }
            eventTypes = types
        default: return nil
        }
    }

    /// The operations in the claim `scope`: words in one string (RFC 9068 §2.2.3), or an array of them.
    static func operations(in claims: JSONValue) -> Set<APIKey.Operation> {
        let scope = claims["scope"]
        let words = scope?.array?.compactMap(\.string) ?? scope?.string?.split(separator: " ").map(String.init)
        return Set((words ?? []).compactMap(APIKey.Operation.init)).intersection(operations)
    }
}
