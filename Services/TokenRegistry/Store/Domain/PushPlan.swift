package import PushProtocol
package import FoundationEssentials

/// The messages for one notification: pushes grouped by provider, environment and topic, and an outcome for each
/// recipient without a device.
package struct PushPlan: Hashable, Sendable {
    package var pushes: [Push]
    package var outcomes: [Outcomes]

    /// Plans `notification` for its recipients' registrations. `devices` is in the order of the recipients.
    ///
    /// Only registrations of a kind that fits the push type get a push. Deterministic: the same input gives the same
    /// messages with the same ids, in the same order. An expired notification gives `expired` outcomes and no push.
    ///
    /// - Parameters:
    ///   - fids: the cohorts whose FIDs are not used.
    ///   - campaign: the campaign that the notification belongs to.
    package init(
        _ notification: Notification, devices: [[Registration]], now: Timestamp, fids: FIDPreference = FIDPreference(),
        campaign: UUID? = nil
    ) {
        if let expiresAt = notification.expiresAt, expiresAt <= now {
            let expired = notification.recipients.map { Outcome(of: $0, .expired, at: now) }
            let everybody = notification.broadcast.map { [Outcome(of: $0, .expired, at: now)] } ?? []
            self.init(pushes: [], outcomes: [Outcomes(of: notification, expired + everybody, "expired")])
            return
        }
        // Only the provider knows the subscribers.
        if let broadcast = notification.broadcast {
            self.init(pushes: [notification.push(to: broadcast, at: now)], outcomes: [])
            return
        }
        precondition(devices.count == notification.recipients.count, "devices must match the recipients")
        let kinds = TargetKinds(notification.content)
        var targets: [Destination: [Push.Target]] = [:]
        var withoutDevice: [Outcome] = []
        var omitted: [Outcome] = []
        for (recipient, registrations) in zip(notification.recipients, devices) {
            var fitting = registrations.fitting(kinds, scope: notification.scope)
            let hasDevice = !fitting.isEmpty
            if let selection = notification.devices {
                omitted += selection.remove(from: &fitting, registrations, recipient, at: now)
            }
            fitting = fitting.withFallbacks(fids)
            if !hasDevice { withoutDevice.append(Outcome(of: recipient, .skipped(reason: "no-device"), at: now)) }
            for place in fitting.indices {
                targets[Destination(of: fitting[place]), default: []].append(Push.Target(recipient, on: fitting[place]))
            }
        }
        self.init(
            pushes: targets.sorted { $0.key < $1.key }.flatMap {
                notification.pushes(to: $0.key, $0.value, of: campaign)
            },
            outcomes: (withoutDevice.isEmpty ? [] : [Outcomes(of: notification, withoutDevice, "no-device")])
                + omitted.chunks(ofAtMost: Self.outcomesPerMessage).enumerated().map { index, outcomes in
                    Outcomes(of: notification, outcomes, "omitted.\(index)")
                })
    }

    /// An outcome takes at most 300 bytes, and a message on the bus 256 KiB.
    private static let outcomesPerMessage = 800

    private init(pushes: [Push], outcomes: [Outcomes]) {
        self.pushes = pushes
        self.outcomes = outcomes
    }
}

/// The grouping key of pushes: a route has one host and one credential, and a push has one topic.
private struct Destination: Hashable, Comparable {
    let provider: Provider
    let environment: ProviderEnvironment
    /// `nil`: derived from the app and the push type.
    let topic: String?

    init(of registration: Registration) {
        provider = registration.provider
        environment = registration.environment
        topic = registration.topic
    }

    /// Omits the provider and environment: they have four combinations, and hashing costs more than a collision.
    func hash(into hasher: inout Hasher) { hasher.combine(topic) }

    static func < (a: Destination, b: Destination) -> Bool {
        (a.provider, a.environment, a.topic ?? "") < (b.provider, b.environment, b.topic ?? "")
    }

    /// The part of a push's id that distinguishes the pushes of one notification.
    var idPart: String {
        let route = "push.\(provider.rawValue).\(environment.rawValue)"
        return topic.map { "\(route).\($0)" } ?? route
    }
}

extension Notification {
    fileprivate func pushes(to destination: Destination, _ targets: [Push.Target], of campaign: UUID?) -> [Push] {
        let content = content.addressed(to: destination.topic)
        return chunks(of: targets).enumerated().map { index, targets in
            Push(
                trace: trace.next(id: DerivedID.caused(by: trace.id, destination.idPart, index: index)), app: app,
                campaign: campaign, provider: destination.provider, environment: destination.environment, lane: lane,
                content: content,
                expiresAt: expiresAt, delivery: delivery, targets: targets)
        }
    }

    /// An upper bound of a push's bytes without content and targets: ids, app, names.
    private static var pushEnvelope: Int { 4096 }

    /// Splits targets by count and by the maximum body size on the bus.
    private func chunks(of targets: [Push.Target]) -> [[Push.Target]] {
        // Content that cannot be encoded fails later in the push, so its size does not matter here.
        let content = (try? WireCoding.encode(content).count) ?? 0
        let room = WireCoding.maximumBodySize - content - Self.pushEnvelope
        var chunks: [[Push.Target]] = []
        var (begin, size) = (0, 0)
        for place in targets.indices {
            let (token, fallback) = (targets[place].token, targets[place].fallback)
            let bytes = Push.Target.maximumEncodedSize + token.secret.utf8.count + (fallback?.secret.utf8.count ?? 0)
            if place > begin, size + bytes > room || place - begin == Push.maximumTargets {
                chunks.append(Array(targets[begin..<place]))
                (begin, size) = (place, 0)
            }
            size += bytes
        }
        // Usually one chunk, which needs no copy.
        return begin == 0 ? [targets] : chunks + [Array(targets[begin...])]
    }
}

extension [Registration] {
    /// The registrations that fit. Returns `self` without a copy if all do.
    fileprivate func fitting(_ kinds: TargetKinds, scope: String?) -> Self {
        let isWhole = indices.allSatisfy { self[$0].fits(kinds, scope: scope) }
        return isWhole ? self : filter { $0.fits(kinds, scope: scope) }
    }
}

extension DeviceSelection {
    /// Removes the registrations that are not selected.
    ///
    /// - Returns: an outcome for each of them.
    fileprivate func remove(
        from fitting: inout [Registration], _ all: [Registration], _ recipient: Notification.Recipient,
        at now: Timestamp
    ) -> [Outcome] {
        var omitted: [Outcome] = []
        fitting.removeAll { registration in
            guard let omission = omission(of: registration, among: all) else { return false }
            omitted.append(
                Outcome(
                    notification: recipient.notification, device: registration.device,
                    answer: .skipped(reason: omission.rawValue), at: now, registeredAt: registration.registeredAt))
            return true
        }
        return omitted
    }
}

extension Registration {
    /// Whether the kind and the scope fit. Registrations of FCM and Web Push have no scope, so they fit any.
    fileprivate func fits(_ kinds: TargetKinds, scope: String?) -> Bool {
        guard kinds.includes(kind) else { return false }
        switch provider {
        case .apns: return scope == nil || self.scope == scope
        case .fcm, .webpush: return true
        }
    }
}

extension Content {
    /// The content with the tokens' topic. The sender checks whether the app may use it.
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
            badge: recipient.badge, registeredAt: registration.registeredAt, fallback: registration.fallback,
            owner: registration.isEstablished ? UserHash(registration.user) : nil)
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
    fileprivate init(of notification: Notification, _ outcomes: [Outcome], _ reason: String) {
        self.init(
            trace: notification.trace.next(id: DerivedID.caused(by: notification.trace.id, "outcomes.\(reason)")),
            app: notification.app, origin: .registry, environment: nil, lane: notification.lane, outcomes: outcomes)
    }
}
