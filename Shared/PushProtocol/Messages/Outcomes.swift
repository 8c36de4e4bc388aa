package import FoundationEssentials

/// What became of the targets of a push, in batches of one disposition. Exchange `outcomes`, routing key
/// `<origin>.<disposition>`, where the origin is the provider's name, or `registry` for users without a device. What was
/// accepted in another environment than the push was for has a batch of its own: `<origin>.accepted.elsewhere`. The same batch
/// has the pushes that a fallback token took in place of a FID.
///
/// On the wire acceptances that have a device, no registration time and one moment in common are a table, the member
/// `accepted`: `at`, and the columns `devices`, `ids` and `notifications`, the last with a single one where all have the
/// same. Everything else is the list `outcomes`. Version 1 had the list only.
///
/// A batch without outcomes, `<origin>.misconfigured`, is a sender's word about its lane alone: see ``LanePulse/storm``.
package struct Outcomes: WireMessage, Hashable {
    package static let messageType = "heliograph.outcomes"
    package static let messageVersion = 2

    package var trace: Trace
    package var app: AppID
    package var origin: Origin
    /// Absent when the registry answers.
    package var environment: ProviderEnvironment?
    package var lane: Lane
    /// With evidence against tokens, and where a storm is told, how the sender's lane fares; absent otherwise.
    package var pulse: LanePulse?
    package var outcomes: [Outcome]

    package init(
        trace: Trace, app: AppID, origin: Origin, environment: ProviderEnvironment?, lane: Lane,
        pulse: LanePulse? = nil, outcomes: [Outcome]
    ) {
        self.trace = trace
        self.app = app
        self.origin = origin
        self.environment = environment
        self.lane = lane
        self.pulse = pulse
        self.outcomes = outcomes
    }

    /// Who speaks: a provider through its sender, or the registry.
    package enum Origin: String, Codable, Hashable, Sendable, CaseIterable {
        case apns
        case fcm
        case registry

        package init(_ provider: Provider) {
            switch provider {
            case .apns: self = .apns
            case .fcm: self = .fcm
            }
        }
    }
}

/// What became of one notification on one device. A provider's rejection is a value; it is never an error.
package struct Outcome: Codable, Hashable, Sendable {
    package var notification: UUID
    /// The registration; absent when the user has none.
    package var device: UUID?
    package var answer: Answer
    /// When the answer was known; of acceptances that leave together, the last of theirs.
    package var at: Timestamp
    /// The registration time the push was addressed with, which is evidence: absent without a device, and of what was
    /// accepted where it was to be sent.
    package var registeredAt: Timestamp?
    /// The environment whose provider took it, where that is not the push's own: the registration is misplaced.
    package var elsewhere: ProviderEnvironment?
    /// The provider's reason against a FID that it does not know. With an acceptance, the provider took the fallback
    /// token; with any other answer, no token helped. Absent for every other address.
    package var refusedFID: String?
    /// Of refusals: the owner of the registration, where it is established; see ``Push/Target/owner``.
    package var owner: OwnerKey?

    package init(
        notification: UUID, device: UUID?, answer: Answer, at: Timestamp, registeredAt: Timestamp?,
        elsewhere: ProviderEnvironment? = nil, refusedFID: String? = nil, owner: OwnerKey? = nil
    ) {
        self.notification = notification
        self.device = device
        self.answer = answer
        self.at = at
        self.registeredAt = registeredAt
        self.elsewhere = elsewhere
        self.refusedFID = refusedFID
        self.owner = owner
    }

    /// The one answer. `reason` is the provider's own word (`BadTopic`, `SENDER_ID_MISMATCH`) or ours.
    package enum Answer: Hashable, Sendable {
        /// The provider took it. Accepted is not delivered. `id` is the provider's name for it.
        case accepted(id: ProviderName?)
        /// The provider says this token is gone, since the given moment where it tells one.
        case unregistered(since: Timestamp?, reason: String)
        /// Never deliverable as it is; nothing is known against the token, unless `suspectToken` says that the reason
        /// may be about the token (wrong environment or app, or malformed).
        case rejected(reason: String, suspectToken: Bool)
        /// Refused for its rate and given up because it would be too late.
        case throttled(reason: String)
        /// Our credentials or configuration are at fault; nothing is known about the token.
        case misconfigured(reason: String)
        /// Too late to be worth anything.
        case expired
        /// Deliberately not sent: `unconfigured`, `no-device`, `revoked` (the user has lost the device since).
        case skipped(reason: String)
        /// Perhaps taken, perhaps not, and not sent again: the push was to be sent at most once.
        case unknown(reason: String)
    }
}

extension Outcome.Answer {
    /// The second word of the routing key.
    package enum Disposition: String, Codable, Sendable, CaseIterable, Comparable {
        case accepted, unregistered, rejected, throttled, misconfigured, expired, skipped, unknown

        package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    package var disposition: Disposition {
        switch self {
        case .accepted: .accepted
        case .unregistered: .unregistered
        case .rejected: .rejected
        case .throttled: .throttled
        case .misconfigured: .misconfigured
        case .expired: .expired
        case .skipped: .skipped
        case .unknown: .unknown
        }
    }
}

extension Outcome.Answer: Codable {
    private enum CodingKeys: String, CodingKey { case disposition, id, since, reason, suspectToken }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func reason() throws -> String { try container.decode(String.self, forKey: .reason) }
        switch try container.decode(Disposition.self, forKey: .disposition) {
        case .accepted: self = .accepted(id: try container.decodeIfPresent(ProviderName.self, forKey: .id))
        case .unregistered:
            self = .unregistered(
                since: try container.decodeIfPresent(Timestamp.self, forKey: .since), reason: try reason())
        case .rejected:
            self = .rejected(
                reason: try reason(),
                suspectToken: try container.decodeIfPresent(Bool.self, forKey: .suspectToken) ?? false)
        case .throttled: self = .throttled(reason: try reason())
        case .misconfigured: self = .misconfigured(reason: try reason())
        case .expired: self = .expired
        case .skipped: self = .skipped(reason: try reason())
        case .unknown: self = .unknown(reason: try reason())
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(disposition, forKey: .disposition)
        switch self {
        case .accepted(let id): try container.encodeIfPresent(id, forKey: .id)
        case .unregistered(let since, let reason):
            try container.encodeIfPresent(since, forKey: .since)
            try container.encode(reason, forKey: .reason)
        case .rejected(let reason, let suspectToken):
            try container.encode(reason, forKey: .reason)
            if suspectToken { try container.encode(true, forKey: .suspectToken) }
        case .throttled(let reason), .misconfigured(let reason), .skipped(let reason), .unknown(let reason):
            try container.encode(reason, forKey: .reason)
        case .expired: break
        }
    }
}
