package import PushProtocol

/// Encodes requests to one push service for one app, and maps its responses to consequences (RFC 8030, RFC 8291).
///
/// The route of a Web Push is an app at one push service's origin. Clients choose endpoints, so a halt or a pause that
/// one origin causes must not reach another one (decision 142). `authorization` is ``VAPIDToken/authorization``.
package struct WebPushCodec: ProviderCodec {
    /// The push service, ``WebPushEndpoint/origin``.
    package let origin: String
    package let site: WebPushSite
    package let policy: WebPushEndpoint.Policy
    /// Each request has its own path.
    package var path: String? { nil }

    package init(origin: String, site: WebPushSite, policy: WebPushEndpoint.Policy = .publicInternet) {
        self.origin = origin
        self.site = site
        self.policy = policy
    }

    package func render(_ push: Push, now: Timestamp) -> any PushRendering {
        WebPushRendering(push, codec: self, now: now)
    }

    /// After a 401, 403 or 429, the other requests would get the same answer, and a push service counts them.
    package func shouldContinue(after status: Int) -> Bool { ![401, 403, 429].contains(status) }

    /// The subscription of `target`. Throws for a target of another push service, so that no connection carries the
    /// endpoint of another origin.
    func subscription(of target: Push.Target) throws(LocalRejection) -> WebPushSubscription {
        guard target.address == nil else { throw LocalRejection("address-not-of-web-push") }
        let subscription: WebPushSubscription
        do throws(WebPushSubscription.Problem) {
            subscription = try WebPushSubscription(text: target.token.secret, policy: policy)
        } catch {
            throw LocalRejection("malformed-subscription", suspectToken: true)
        }
        guard subscription.endpoint.origin == origin else { throw LocalRejection("endpoint-of-another-origin") }
        return subscription
    }
}
