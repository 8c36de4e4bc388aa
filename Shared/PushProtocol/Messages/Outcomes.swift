package import FoundationEssentials

/// The outcomes of a push's targets, in batches of one disposition. Exchange `outcomes`, routing key
/// `<origin>.<disposition>`. The origin is the provider, or `registry` for users without a device.
///
/// Two kinds of acceptances have batches of their own, `<origin>.accepted.elsewhere`: those in an environment other
/// than the push's, and those through a FID's fallback token.
///
/// On the wire, acceptances with a device, no registration time and one common time are a table, the member
/// `accepted`: `at` and the columns `devices`, `ids` and `notifications`. The last has one value where all rows share
/// it. All other outcomes are the list `outcomes`. Version 1 had only the list.
///
/// A batch `<origin>.misconfigured` without outcomes reports a bad-token spike on the sender's route; see
/// ``RouteHealth/badTokenSpike``.
package struct Outcomes: WireMessage, Hashable {
    package static let messageType = "heliograph.outcomes"
    package static let messageVersion = 2

    package var trace: Trace
    package var app: AppID
    package var origin: Origin
    /// Absent for outcomes of the registry.
    package var environment: ProviderEnvironment?
    package var lane: Lane
    /// The health of the sender's route. Present with evidence against tokens and with a bad-token spike. Encoded as
    /// `pulse`.
    package var routeHealth: RouteHealth?
    package var outcomes: [Outcome]

    package var notificationIDs: [UUID] { outcomes.map(\.notification) }

    package init(
        trace: Trace, app: AppID, origin: Origin, environment: ProviderEnvironment?, lane: Lane,
        routeHealth: RouteHealth? = nil, outcomes: [Outcome]
    ) {
        self.trace = trace
        self.app = app
        self.origin = origin
        self.environment = environment
        self.lane = lane
        self.routeHealth = routeHealth
        self.outcomes = outcomes
    }

    /// The source of an outcome: a provider, through its sender, or the registry.
    package enum Origin: String, Hashable, Sendable, CaseIterable {
        case apns
        case fcm
        case webpush
        case registry

        package init(_ provider: Provider) {
            switch provider {
            case .apns: self = .apns
            case .fcm: self = .fcm
            case .webpush: self = .webpush
            }
        }
    }
}

/// The outcome of one notification on one device. A provider's rejection is a value, never an error.
package struct Outcome: Hashable, Sendable {
    package var notification: UUID
    /// The registration; absent when the user has none.
    package var device: UUID?
    package var answer: Answer
    /// When the outcome was known. Acceptances in one message share the time of the last.
    package var at: Timestamp
    /// The registration time that the push was addressed with. Absent without a device, and for acceptances in the
    /// push's own environment.
    package var registeredAt: Timestamp?
    /// The environment that accepted the push, if other than the push's: the registration is stored with the wrong
    /// one.
    package var elsewhere: ProviderEnvironment?
    /// The provider's reason for rejecting a FID. With an acceptance, the provider accepted the fallback token. With
    /// any other answer, no token was accepted. Absent for other addresses.
    package var refusedFID: String?
    /// On rejections: the user of an established registration; see ``Push/Target/owner``.
    package var owner: UserHash?

    package init(
        notification: UUID, device: UUID?, answer: Answer, at: Timestamp, registeredAt: Timestamp?,
        elsewhere: ProviderEnvironment? = nil, refusedFID: String? = nil, owner: UserHash? = nil
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

    /// The answer for a target. `reason` is the provider's code (`BadTopic`, `SENDER_ID_MISMATCH`) or this project's.
    package enum Answer: Hashable, Sendable {
        /// Accepted by the provider, which is not delivered. `id` is the provider's message id.
        case accepted(id: ProviderMessageID?)
        /// The provider reports the token as gone, with the time if it gives one.
        case unregistered(since: Timestamp?, reason: String)
        /// Permanently rejected. `suspectToken`: the token may be the cause (wrong environment or app, or malformed).
        case rejected(reason: String, suspectToken: Bool)
        /// Rate-limited until it would have been too late.
        case throttled(reason: String)
        /// Rejected because of our credentials or configuration. Says nothing about the token.
        case misconfigured(reason: String)
        /// Expired before it was sent.
        case expired
        /// Not sent on purpose: `unconfigured`, `no-device`, `revoked` (the user no longer has the device).
        case skipped(reason: String)
        /// Possibly accepted, and not sent again: the push was to be sent at most once.
        case unknown(reason: String)
    }
}

extension Outcome.Answer {
    /// The second word of the routing key.
    package enum Disposition: String, Sendable, CaseIterable, Comparable {
        case accepted, unregistered, rejected, throttled, misconfigured, expired, skipped, unknown

        package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    /// The provider's code or this project's; `nil` for an accepted or expired target.
    package var reason: String? {
        switch self {
        case .unregistered(_, let reason), .rejected(let reason, _), .throttled(let reason), .misconfigured(let reason),
            .skipped(let reason), .unknown(let reason):
            reason
        case .accepted, .expired: nil
        }
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
