import PushProtocol
import FoundationEssentials

/// What one notification becomes: pushes grouped by provider, environment and topic, and the outcome of each recipient that
/// has no device, so that nobody ends in silence.
struct PushPlan: Hashable, Sendable {
    var pushes: [Push]
    var outcomes: [Outcomes]

    /// Plans `notification` for the devices its recipients have.
    ///
    /// Only registrations of the kinds that its push type may go to get it. The same notification and devices give the
    /// same messages with the same ids, in the same order. A notification that has expired gives `expired` outcomes and
    /// no push.
    init(_ notification: Notification, devices: [AppUser: [Registration]], now: Timestamp) {
        if let expiresAt = notification.expiresAt, expiresAt <= now {
            let expired = notification.recipients.map { Outcome(of: $0, .expired, at: now) }
            let everybody = notification.broadcast.map { [Outcome(of: $0, .expired, at: now)] } ?? []
            self.init(pushes: [], outcomes: [Outcomes(of: notification, expired + everybody, "expired")])
            return
        }
        // Who follows is the provider's knowledge: there is nobody to look up.
        if let broadcast = notification.broadcast {
            self.init(pushes: [notification.push(to: broadcast, at: now)], outcomes: [])
            return
        }
        let kinds = KindSelection(notification.content)
        var targets: [Destination: [Push.Target]] = [:]
        var without: [Outcome] = []
        for recipient in notification.recipients {
            let registrations = devices[AppUser(app: notification.app, user: recipient.user), default: []]
                .filter { kinds.includes($0, scope: notification.scope) }.withoutSecondAddresses
            if registrations.isEmpty { without.append(Outcome(of: recipient, .skipped(reason: "no-device"), at: now)) }
            for registration in registrations {
                let destination = Destination(
                    provider: registration.provider, environment: registration.environment, topic: registration.topic)
                targets[destination, default: []].append(Push.Target(recipient, on: registration))
            }
        }
        self.init(
            pushes: targets.sorted { $0.key < $1.key }.flatMap { notification.pushes(to: $0.key, $0.value) },
            outcomes: without.isEmpty ? [] : [Outcomes(of: notification, without, "no-device")])
    }

    private init(pushes: [Push], outcomes: [Outcomes]) {
        self.pushes = pushes
        self.outcomes = outcomes
    }
}

/// What separates one push from another: a sender's lane has one host and one credential, and a push has one topic.
private struct Destination: Hashable, Comparable {
    let provider: Provider
    let environment: ProviderEnvironment
    /// Absent: the one that follows from the app and the push type.
    let topic: String?

    static func < (a: Destination, b: Destination) -> Bool {
        (a.provider, a.environment, a.topic ?? "") < (b.provider, b.environment, b.topic ?? "")
    }

    /// Part of a push's id.
    var word: String {
        let word = "push.\(provider.rawValue).\(environment.rawValue)"
        return topic.map { "\(word).\($0)" } ?? word
    }
}

extension Notification {
    fileprivate func pushes(to destination: Destination, _ targets: [Push.Target]) -> [Push] {
        let content = content.addressed(to: destination.topic)
        return chunks(of: targets).enumerated().map { index, targets in
            Push(
                trace: trace.next(id: DerivedID.caused(by: trace.id, destination.word, index: index)), app: app,
                provider: destination.provider, environment: destination.environment, lane: lane, content: content,
                expiresAt: expiresAt, delivery: delivery, targets: targets)
        }
    }

    /// Splits by count, and by the bytes that a push may have on the bus.
    private func chunks(of targets: [Push.Target]) -> [[Push.Target]] {
        // What cannot be encoded here fails where the push is; its size then does not matter.
        let content = (try? WireCoding.encode(content).count) ?? 0
        let room = WireCoding.maximumBodySize - content - PushSize.envelope
        var chunks: [[Push.Target]] = []
        var size = room
        for target in targets {
            let bytes = PushSize.target + target.token.secret.utf8.count
            if size + bytes > room || chunks[chunks.count - 1].count == Push.maximumTargets {
                chunks.append([])
                size = 0
            }
            chunks[chunks.count - 1].append(target)
            size += bytes
        }
        return chunks
    }
}

extension KindSelection {
    /// Whether a registration gets it. FCM knows no scopes: what an app may have several of is Apple's.
    func includes(_ registration: Registration, scope: String?) -> Bool {
        guard includes(registration.kind) else { return false }
        switch registration.provider {
        case .apns: return scope == nil || registration.scope == scope
        case .fcm: return true
        }
    }
}

/// Generous bounds for the parts of a push's JSON, in bytes.
private enum PushSize {
    /// Everything but content and targets: ids, app, names.
    static let envelope = 4096
    /// A target without its token: two UUIDs, a time, a badge, and the names of the members.
    static let target = 256
}

extension Content {
    /// With the topic that the targets' tokens are of. Whether the app may use it is the sender's to say.
    fileprivate func addressed(to topic: String?) -> Content {
        guard let topic else { return self }
        var content = self
        var headers = (content.apns?.headers ?? [:]).filter { $0.key.lowercased() != "apns-topic" }
        headers["apns-topic"] = topic
        content.apns = APNsOverride(headers: headers, payload: content.apns?.payload)
        return content
    }
}

extension Push.Target {
    fileprivate init(_ recipient: Notification.Recipient, on registration: Registration) {
        self.init(
            device: registration.device, token: registration.token,
            address: registration.kind == .fid ? .fid : nil, notification: recipient.notification,
            badge: recipient.badge, registeredAt: registration.registeredAt)
    }
}

extension Outcome {
    fileprivate init(of recipient: Notification.Recipient, _ answer: Answer, at now: Timestamp) {
        self.init(notification: recipient.notification, device: nil, answer: answer, at: now, registeredAt: nil)
    }

    fileprivate init(of broadcast: Broadcast, _ answer: Answer, at now: Timestamp) {
        self.init(notification: broadcast.notification, device: nil, answer: answer, at: now, registeredAt: nil)
    }
}

extension Outcomes {
    fileprivate init(of notification: Notification, _ outcomes: [Outcome], _ word: String) {
        self.init(
            trace: notification.trace.next(id: DerivedID.caused(by: notification.trace.id, "outcomes.\(word)")),
            app: notification.app, origin: .registry, environment: nil, lane: notification.lane, outcomes: outcomes)
    }
}
