import AMQP
import FoundationEssentials
import Messaging
import PushProtocol
import RegistryStore
import Synchronization

/// Computes the steps of campaigns, without publishing.
final class CampaignSteps: Sendable {
    /// Approximate devices of a step.
    static let defaultSize = 4000
    /// The same while interactive notifications arrive.
    static let smallSize = 500
    /// Approximate devices or users of a step that resolves a segment.
    static let segmentSize = 400
    /// Maximum users of a group or list in a step.
    static let maximumMembers = 2000

    private let store: CampaignStore
    private let fids: @Sendable () -> FIDPreference
    private let now: @Sendable () -> Timestamp
    /// Running campaigns. They do not change.
    private let known = Mutex<[UUID: Campaign]>([:])

    init(
        store: CampaignStore, fids: @escaping @Sendable () -> FIDPreference = { FIDPreference() },
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.store = store
        self.fids = fids
        self.now = now
    }

    enum Verdict: Sendable {
        /// The cursor is obsolete.
        case void
        /// Try the cursor again later.
        case later
        /// The campaign's rate limit is reached; try again after the duration.
        case wait(Duration)
        /// The campaign's last range has ended.
        /// The page says that no user matches a segment; `nil` for other campaigns.
        case finished(Outbound?)
        case expired
        case step(Step)
    }

    /// A step, ready to be published.
    struct Step: Sendable {
        let tally: CampaignTally
        /// The sender queues of the pushes.
        let queues: Set<String>
        /// The rules' queues of the pages of a segment.
        let rulesQueues: Set<String>
        /// The pushes reserved of the campaign's rate limit, and the limit; `nil` without one.
        let reserved: (count: Int, rate: Int)?
        fileprivate let outbound: [Outbound]
        fileprivate let cursor: Outbound

        /// The pushes of the step, and the outcomes of users without a device.
        func pushes(from service: String) -> [AMQPMessage] { outbound.map { $0.message(from: service) } }

        /// The next cursor. It is published after the broker has confirmed the pushes.
        func next(from service: String) -> AMQPMessage { cursor.message(from: service) }
    }

    /// Claims a cursor and computes its step.
    ///
    /// - Parameter size: approximate maximum of devices.
    func next(_ cursor: CampaignCursor, redelivered: Bool, size: Int = defaultSize) async throws -> Verdict {
        let upper: String?
        switch try await store.claim(cursor, redelivered: redelivered) {
        case .void: return .void
        case .later: return .later
        case .granted(let bound): upper = bound
        }
        if cursor.isAtEnd {
            let isLast = try await store.finish(cursor)
            guard isLast else { return .void }
            let campaign = try await campaign(cursor.campaign)
            known.withLock { $0[cursor.campaign] = nil }
            guard let page = campaign?.emptyPage, try await store.hasNoUser(cursor.campaign) else {
                return .finished(nil)
            }
            return .finished(try page.message())
        }
        guard let campaign = try await campaign(cursor.campaign) else { return .void }
        let now = now()
        if let expiresAt = campaign.notification.expiresAt, expiresAt <= now {
            try await store.expire(campaign.id)
            return .expired
        }
        var limit = campaign.audience.members == .everyone ? size : min(size, Self.maximumMembers)
        if campaign.audience.resolves { limit = min(limit, Self.segmentSize) }
        if let rate = campaign.audience.rate {
            // At most the pushes of one second.
            limit = min(limit, rate)
            if let wait = try await store.reserve(limit, of: campaign.id, rate: rate) { return .wait(wait) }
        }
        let page = try await store.page(of: campaign, after: cursor.position, upTo: upper, limit: limit)
        let step = CampaignStep(campaign, at: cursor, page, now: now, fids: fids())
        let next = try Outbound(step.next, to: .devices, routingKey: RoutingKey.campaignCursor)
        let queues = step.plan.pushes.map { WorkQueue.senderPushes($0.provider, $0.lane, $0.app).name }
        let rulesQueues = step.pages.map { WorkQueue.rulesAppEvents($0.event.app).name }
        return .step(
            Step(
                tally: step.tally, queues: Set(queues), rulesQueues: Set(rulesQueues),
                reserved: campaign.audience.rate.map { (limit, $0) },
                outbound: try step.plan.outbound() + step.pages.map { page throws(WireError) in try page.message() },
                cursor: next))
    }

    /// Returns the unused part of a step's reservation to the campaign's rate limit, after success or failure.
    func releaseUnused(_ step: Step, telling devices: Int64, of cursor: CampaignCursor) async throws {
        guard let (count, rate) = step.reserved else { return }
        try await store.release(count - Int(devices), of: cursor.campaign, rate: rate)
    }

    /// Releases the lease, so that another process may make the step.
    func yield(_ cursor: CampaignCursor) async throws { try await store.yield(cursor) }

    private func campaign(_ id: UUID) async throws -> Campaign? {
        if let campaign = known.withLock({ $0[id] }) { return campaign }
        guard let campaign = try await store.campaign(id) else { return nil }
        known.withLock { known in
            // Campaigns that other processes finished are never removed otherwise.
            if known.count >= 100 { known.removeAll() }
            known[id] = campaign
        }
        return campaign
    }
}
