import FoundationEssentials
package import PushProtocol
package import PushSending

/// How APNs is spoken to for one app: `POST /3/device/<token>`, and `POST /4/broadcasts/apps/<bundle>` for a channel.
package struct APNsWire: PushWire {
    /// The app's bundle id.
    let topic: String
    /// Asked for each push: a certificate that changes may be for other topics.
    let authentication: @Sendable () -> APNsAuthentication
    private let plain: APNsLetter.Plain

    package init(topic: String, authentication: @escaping @Sendable () -> APNsAuthentication = { .token }) {
        self.topic = topic
        self.authentication = authentication
        plain = APNsLetter.Plain(bundle: topic)
    }

    /// Devices and channels have paths of their own.
    package var path: String? { nil }

    package func render(_ push: Push, now: Timestamp) -> any PushRendering {
        if let rendering = rendering(asItCame: push) { return rendering }
        let broadcast: Result<APNsBroadcast, LocalRejection>? =
            if push.targets.contains(where: { $0.address == .channel }) {
                Result { () throws(LocalRejection) in
                    if let objection = authentication().objection(to: .liveActivity, topic: topic) {
                        throw LocalRejection(objection)
                    }
                    return try APNsBroadcast(push, bundle: topic)
                }
            } else { nil }
        do throws(LocalRejection) {
            let letter =
                if let plain = plain.letter(for: push.content, expiresAt: push.expiresAt) { plain } else {
                    APNsLetter(try APNsHeaders(for: push.content, bundle: topic, expiresAt: push.expiresAt))
                }
            if let objection = authentication().objection(to: letter.pushType, topic: letter.topic) {
                throw LocalRejection(objection)
            }
            return APNsRendering(
                letter: .success(letter), bodies: Self.bodies(of: push, letter.pushType), broadcast: broadcast)
        } catch {
            return APNsRendering(letter: .failure(error), bodies: .byBadge([:]), broadcast: broadcast)
        }
    }

    /// The rendering of a push whose content need not be read, since its text goes into the payload as it stands;
    /// `nil` for any other.
    private func rendering(asItCame push: Push) -> APNsRendering? {
        guard let text = push.contentText, text.members.collapseKey.isAbsent, let badge = push.commonBadge,
            let letter = plain.letter(silent: text.silent, expiresAt: push.expiresAt),
            authentication().objection(to: letter.pushType, topic: letter.topic) == nil,
            let body = APNsPayload.write(text, badge: badge), body.count <= letter.pushType.maximumPayload
        else { return nil }
        return APNsRendering(letter: .success(letter), bodies: .one(.success(body)), broadcast: nil)
    }

    private static func bodies(of push: Push, _ pushType: APNsPushType) -> APNsRendering.Bodies {
        let first = push.targets.first?.badge
        guard push.targets.contains(where: { $0.badge != first }) else {
            return .one(body(push.content, badge: first, pushType: pushType))
        }
        var bodies: [Int?: APNsRendering.Body] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            bodies[badge] = body(push.content, badge: badge, pushType: pushType)
        }
        return .byBadge(bodies)
    }

    /// A refused credential is refused for everybody.
    package func goesOn(after status: Int) -> Bool { status != 403 }

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
    /// The badge of every target; `nil` where they differ, or are not all devices.
    fileprivate var commonBadge: Int?? {
        guard let first = targets.first,
            targets.allSatisfy({ $0.badge == first.badge && $0.address == nil })
        else { return nil }
        return .some(first.badge)
    }
}
