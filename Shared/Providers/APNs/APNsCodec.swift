package import PushProtocol
import FoundationEssentials

/// Encodes requests to APNs for one app: `POST /3/device/<token>`, and `POST /4/broadcasts/apps/<bundle>` for
/// channels. Maps responses to consequences.
package struct APNsCodec: ProviderCodec {
    /// The app's bundle id.
    let topic: String
    /// Evaluated for each push, because a new certificate may have other topics.
    let authentication: @Sendable () -> APNsAuthentication
    private let defaults: APNsHeaderTemplate.Defaults

    package init(topic: String, authentication: @escaping @Sendable () -> APNsAuthentication = { .token }) {
        self.topic = topic
        self.authentication = authentication
        defaults = APNsHeaderTemplate.Defaults(bundle: topic)
    }

    /// Each device and channel has its own path.
    package var path: String? { nil }

    package func render(_ push: Push, now: Timestamp) -> any PushRendering {
        if let rendering = rendering(withoutDecoding: push) { return rendering }
        let broadcast: Result<APNsBroadcast, LocalRejection>? =
            if push.targets.contains(where: { $0.address == .channel }) {
                Result { () throws(LocalRejection) in
                    if let rejectionReason = authentication().rejectionReason(to: .liveActivity, topic: topic) {
                        throw LocalRejection(rejectionReason)
                    }
                    return try APNsBroadcast(push, bundle: topic)
                }
            } else { nil }
        do throws(LocalRejection) {
            let template =
                if let plain = defaults.template(for: push.content, expiresAt: push.expiresAt) { plain } else {
                    APNsHeaderTemplate(try APNsHeaders(for: push.content, bundle: topic, expiresAt: push.expiresAt))
                }
            if let rejectionReason = authentication().rejectionReason(to: template.pushType, topic: template.topic) {
                throw LocalRejection(rejectionReason)
            }
            return APNsRendering(
                template: .success(template), bodies: Self.bodies(of: push, template.pushType), broadcast: broadcast)
        } catch {
            return APNsRendering(template: .failure(error), bodies: .byBadge([:]), broadcast: broadcast)
        }
    }

    /// Renders a push without decoding its content; `nil` where decoding is needed.
    private func rendering(withoutDecoding push: Push) -> APNsRendering? {
        guard let text = push.encodedContent, text.members.collapseKey.isAbsent, let badge = push.commonBadge,
            let template = defaults.template(silent: text.silent, expiresAt: push.expiresAt),
            authentication().rejectionReason(to: template.pushType, topic: template.topic) == nil,
            let body = APNsPayload.write(text, badge: badge), body.count <= template.pushType.maximumPayload
        else { return nil }
        return APNsRendering(template: .success(template), bodies: .one(.success(body)), broadcast: nil)
    }

    private static func bodies(of push: Push, _ pushType: APNsPushType) -> APNsRendering.Bodies {
        let first = push.targets.first?.badge
        let content = push.apnsContent
        guard push.targets.contains(where: { $0.badge != first }) else {
            return .one(body(content, badge: first, pushType: pushType))
        }
        var bodies: [Int?: APNsRendering.Body] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            bodies[badge] = body(content, badge: badge, pushType: pushType)
        }
        return .byBadge(bodies)
    }

    /// A 403 concerns the credential, so all requests would get it.
    package func shouldContinue(after status: Int) -> Bool { status != 403 }

    private static func body(_ content: Content, badge: Int?, pushType: APNsPushType) -> APNsRendering.Body {
        Result { () throws(LocalRejection) in
            let body =
                if pushType == .alert || pushType == .background, content.silent == (pushType == .background),
                    let body = APNsPayload.write(content, badge: badge)
                { body } else {
                    try checked(content, badge: badge, pushType)
                }
            guard body.count <= pushType.maximumPayload else { throw LocalRejection("payload-too-large") }
            return body
        }
    }

    private static func checked(
        _ content: Content, badge: Int?, _ pushType: APNsPushType
    ) throws(LocalRejection) -> [UInt8] {
        let payload = try APNsPayload.render(content, badge: badge)
        try pushType.check(payload)
        return JSONText.bytes(of: payload)
    }
}

extension Push {
    /// The badge that all targets share; `nil` where badges differ or a target is not a device.
    fileprivate var commonBadge: Int?? {
        guard let first = targets.first,
            targets.allSatisfy({ $0.badge == first.badge && $0.address == nil })
        else { return nil }
        return .some(first.badge)
    }
}
