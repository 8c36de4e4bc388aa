import Primitives

/// The URL of a subscription at its push service (RFC 8030 §2).
///
/// A client chooses it, so it must not reach networks of the operator. This type judges the URL;
/// ``accepts(address:)`` judges each address that the name resolves to, when the connection is opened.
package struct WebPushEndpoint: Hashable, Sendable {
    /// The endpoints that are accepted.
    package struct Policy: Hashable, Sendable {
        /// Whether networks of the operator are destinations too, for tests and for a push service of one's own.
        package var privateNetworks: Bool

        package init(privateNetworks: Bool = false) { self.privateNetworks = privateNetworks }

        package static let publicInternet = Policy()
    }

    /// The endpoint's text: a capability, so never log it (RFC 8030 §8.3).
    package let secret: String
    /// The push service: `https://host`, with the port if it is not 443. Both a VAPID audience (RFC 8292 §2) and the
    /// unit of connections and pauses.
    package let origin: String
    package let host: String
    package let port: Int
    /// The path and the query. Secret like the endpoint.
    package let path: String
    private let policy: Policy

    /// - Throws: A refusal without the endpoint's path.
    package init(_ text: String, policy: Policy = .publicInternet) throws(WebPushSubscription.Problem) {
        let url: OutboundURL
        do throws(OutboundURL.Refusal) {
            url = try OutboundURL(text)
        } catch {
            throw Self.problem(error.description)
        }
        if let refusal = url.refusal(privateNetworks: policy.privateNetworks, plaintext: false) {
            throw Self.problem(refusal.description)
        }
        if url.address == nil {
            let labels = url.host.split(separator: ".")
            // Edge on Android has subscriptions at `permanently-removed.invalid`, without a push service.
            if labels.last == "invalid" {
                throw WebPushSubscription.Problem(
                    "endpoint: \(url.host) is no push service; this browser cannot receive pushes, so do not register it"
                )
            }
            if labels.count < 2, !policy.privateNetworks {
                throw Self.problem("\(url.host) is a name of a private network")
            }
        }
        self.policy = policy
        secret = text
        host = url.host
        port = url.port
        let name = url.host.contains(":") ? "[\(url.host)]" : url.host
        origin = url.port == 443 ? "https://\(name)" : "https://\(name):\(url.port)"
        let rest = text.dropFirst("https://".count).drop { $0 != "/" && $0 != "?" }
        path = rest.hasPrefix("/") ? String(rest) : "/\(rest)"
    }

    /// Whether a connection for this endpoint may be opened to `address`, of 4 or 16 bytes in network order.
    ///
    /// Ask it of the address that the socket connects to. A name may resolve to another address each time, so the
    /// check at registration protects nothing.
    package func accepts(address: [UInt8]) -> Bool {
        AddressClass(address).isAllowed(privateNetworks: policy.privateNetworks)
    }

    private static func problem(_ text: String) -> WebPushSubscription.Problem {
        WebPushSubscription.Problem(
            "endpoint: \(text); \(WebPushSubscription.Problem.advice)")
    }
}

extension WebPushEndpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The push service, without the secret path.
    package var description: String { "\(origin)/‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
