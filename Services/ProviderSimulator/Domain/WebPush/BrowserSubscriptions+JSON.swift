import Crypto
import FoundationEssentials
import PushProtocol

/// The control operations on subscriptions.
extension BrowserSubscriptions {
    /// Creates a posted subscription: `{"app": "…"}`, or `{"application_server_key": "…"}` as a page has it. Optional are
    /// `origin` and `expires_in_ms`.
    ///
    /// - Parameter origin: the push service of a subscription without `origin`.
    func subscribe(
        _ value: JSONValue, apps: KnownApps, origin: String, at now: Timestamp
    ) throws(ControlRequestError) -> BrowserSubscription {
        let members = try MemberReader(
            value, at: "", known: ["app", "application_server_key", "origin", "expires_in_ms"])
        let (key, app) = try Self.key(members, apps)
        let lifetime = try members.integer("expires_in_ms", in: 0...31_536_000_000)
        let subscription = BrowserSubscription(
            origin: try Self.origin(members) ?? origin, serverKey: key, app: app,
            expiresAt: lifetime.map { now + .milliseconds($0) })
        insert(subscription)
        return subscription
    }

    private static func key(
        _ members: MemberReader, _ apps: KnownApps
    ) throws(ControlRequestError) -> (key: [UInt8], app: String?) {
        switch (try members.text("app"), try members.text("application_server_key")) {
        case (let app?, nil):
            guard let key = apps.vapidKeys[app] else {
                throw members.problem("app", "is no app with a VAPID key in the catalog")
            }
            return (key, app)
        case (nil, let text?):
            guard let key = Base64URL.bytes(of: text),
                (try? P256.Signing.PublicKey(x963Representation: key)) != nil
            else {
                throw members.problem("application_server_key", "is not an uncompressed P-256 point in base64url")
            }
            return (key, apps.app(withVAPIDKey: key))
        case (nil, nil): throw members.problem("app", "is missing, as is application_server_key")
        case (_?, _?): throw members.problem("app", "and application_server_key exclude each other")
        }
    }

    private static func origin(_ members: MemberReader) throws(ControlRequestError) -> String? {
        guard let origin = try members.text("origin") else { return nil }
        guard origin.hasPrefix("https://"), !origin.dropFirst(8).isEmpty, !origin.dropFirst(8).contains("/") else {
            throw members.problem("origin", "is not https://host:port")
        }
        return origin
    }
}
