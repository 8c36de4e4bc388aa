package import FoundationEssentials
package import PushProtocol

/// A stored request that takes notifications back, and the numbers of revoked things.
package struct Revocation: Hashable, Sendable {
    package var id: UUID
    package var app: String
    package var target: Target
    /// Only this user's notifications; `nil` means the notifications of all users.
    package var user: String?
    package var inbox: Inbox
    package var source: Source
    /// The name of an API key, the database user of `pushctl`, or the place in the rule file.
    package var requestedBy: String
    package var reason: String?
    package var requestedAt: Date
    /// When it was carried out; `nil` while a worker has to continue it.
    package var endedAt: Date?
    package var effect = Effect()
    /// The campaigns of its event. A revocation for all users cancels them.
    package var campaigns: [UUID] = []

    package init(
        id: UUID, app: String, target: Target, user: String?, inbox: Inbox, source: Source, requestedBy: String,
        reason: String?, requestedAt: Date, endedAt: Date?, effect: Effect = Effect()
    ) {
        self.id = id
        self.app = app
        self.target = target
        self.user = user
        self.inbox = inbox
        self.source = source
        self.requestedBy = requestedBy
        self.reason = reason
        self.requestedAt = requestedAt
        self.endedAt = endedAt
        self.effect = effect
    }

    /// The notifications that a revocation names.
    package enum Target: Hashable, Sendable {
        /// The notifications about the app's events with this id, from any source.
        case event(String)
        case notification(UUID)
        /// The notifications about an item, of events up to this time.
        case item(String, until: Date)
    }

    /// The effect on inbox items. Stored and part of the API, so the raw values are fixed.
    package enum Inbox: String, Hashable, Sendable, CaseIterable {
        case remove
        case keep
    }

    /// The origin of the request. Stored and a metric label, so the raw values are fixed.
    package enum Source: String, Hashable, Sendable, CaseIterable {
        case `operator`
        /// The section `revoke` of a rule file.
        case rule
    }

    /// The numbers of revoked things.
    package struct Effect: Hashable, Sendable {
        /// Held and scheduled notifications.
        package var held = 0
        /// Entries of digests.
        package var gathered = 0
        /// Fan-outs that were in progress.
        package var fanOuts = 0
        /// Pushes that no provider had accepted. Senders skip them.
        package var pushes = 0
        /// Pushes that a provider had accepted. Clear commands remove their copies from phones.
        package var shown = 0
        package var inboxItems = 0

        package init(
            held: Int = 0, gathered: Int = 0, fanOuts: Int = 0, pushes: Int = 0, shown: Int = 0, inboxItems: Int = 0
        ) {
            self.held = held
            self.gathered = gathered
            self.fanOuts = fanOuts
            self.pushes = pushes
            self.shown = shown
            self.inboxItems = inboxItems
        }
    }
}

/// An operator's request for a revocation.
package struct RevocationRequest: Hashable, Sendable {
    /// The most characters of a reason, counted in Unicode scalars.
    package static let maximumReason = 500

    package var app: AppID
    package var target: Target
    package var user: UserID?
    package var inbox = Revocation.Inbox.remove
    package var reason: String?
    /// Whether the event may be unknown. Its notifications are then revoked when it arrives.
    package var isAhead = false

    package enum Target: Hashable, Sendable {
        case event(String)
        case notification(UUID)
    }

    /// The authentication of the request, from which the stored name follows.
    package enum Requester: Hashable, Sendable {
        /// An API key of rules, by its public id.
        case key(String)
        case masterKey
        /// `pushctl`, as the database user of its connection.
        case commandLine
    }

    package init(
        app: AppID, target: Target, user: UserID? = nil, inbox: Revocation.Inbox = .remove, reason: String? = nil,
        isAhead: Bool = false
    ) {
        self.app = app
        self.target = target
        self.user = user
        self.inbox = inbox
        self.reason = reason
        self.isAhead = isAhead
    }

    /// Derived from everything but the reason and ``isAhead``: a repeated request has the same id.
    package var id: UUID {
        let (kind, name) =
            switch target {
            case .event(let event): ("event", event)
            case .notification(let notification): ("notification", notification.uuidString.lowercased())
            }
        return DerivedID.uuid5(
            DerivedID.namespace, ["revocation", app.rawValue, kind, name, user?.rawValue ?? "", inbox.rawValue])
    }
}
