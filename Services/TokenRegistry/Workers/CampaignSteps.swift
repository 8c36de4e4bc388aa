import AMQP
import FoundationEssentials
import Messaging
import PushProtocol
import Synchronization

/// What is to be done about a cursor: all of a campaign's step but the broker's part.
final class CampaignSteps: Sendable {
    /// About how many devices a step tells.
    static let usualSize = 4000
    /// The same as long as people wait for what is said at once.
    static let smallSize = 500
    /// How many users of a group or list a step looks at.
    static let usualMembers = 2000

    private let store: CampaignStore
    private let fids: @Sendable () -> FIDPreference
    private let now: @Sendable () -> Timestamp
    /// The campaigns under way; they never change.
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
        /// The cursor has no meaning any more.
        case void
        /// It is to come back later.
        case later
        /// It may go on so much later: the campaign's rate is reached.
        case wait(Duration)
        /// The last range was walked to its end.
        case finished
        case expired
        case step(Step)
    }

    /// A step, ready to be published.
    struct Step: Sendable {
        let tally: CampaignTally
        /// The sender's queues that get something.
        let queues: Set<String>
        /// What was taken of the campaign's rate, and the rate; absent without one.
        let reserved: (count: Int, rate: Int)?
        fileprivate let outbound: [Outbound]
        fileprivate let cursor: Outbound

        /// The pushes of the step, and the outcomes of users without a device.
        func pushes(from service: String) -> [AMQPMessage] { outbound.map { $0.message(from: service) } }

        /// The cursor behind the step. It is published after the broker has confirmed the pushes.
        func next(from service: String) -> AMQPMessage { cursor.message(from: service) }
    }

    /// Decides about a cursor that was taken from its queue.
    ///
    /// - Parameter size: about how many devices a step may tell.
    func next(_ cursor: CampaignCursor, redelivered: Bool, size: Int = usualSize) async throws -> Verdict {
        let upper: String?
        switch try await store.claim(cursor, redelivered: redelivered) {
        case .void: return .void
        case .later: return .later
        case .granted(let bound): upper = bound
        }
        if cursor.isAtEnd {
            let isLast = try await store.finish(cursor)
            if isLast { known.withLock { $0[cursor.campaign] = nil } }
            return isLast ? .finished : .void
        }
        guard let campaign = try await campaign(cursor.campaign) else { return .void }
        let now = now()
        if let expiresAt = campaign.notification.expiresAt, expiresAt <= now {
            try await store.expire(campaign.id)
            return .expired
        }
        var limit = campaign.audience.members == .everyone ? size : min(size, Self.usualMembers)
        if let rate = campaign.audience.rate {
            // A second's worth at once, at most.
            limit = min(limit, rate)
            if let wait = try await store.reserve(limit, of: campaign.id, rate: rate) { return .wait(wait) }
        }
        let page = try await store.page(of: campaign, after: cursor.position, upTo: upper, limit: limit)
        let step = CampaignStep(campaign, at: cursor, page, now: now, fids: fids())
        let next = try Outbound(step.next, to: .devices, routingKey: RoutingKey.campaignCursor)
        let queues = step.plan.pushes.map { WorkQueue.senderPushes($0.provider, $0.lane, $0.app).name }
        return .step(
            Step(
                tally: step.tally, queues: Set(queues), reserved: campaign.audience.rate.map { (limit, $0) },
                outbound: try step.plan.outbound(), cursor: next))
    }

    /// After a step, made or not: what it reserved of the campaign's rate and did not use to tell devices, another may.
    func giveBack(_ step: Step, telling devices: Int64, of cursor: CampaignCursor) async throws {
        guard let (count, rate) = step.reserved else { return }
        try await store.release(count - Int(devices), of: cursor.campaign, rate: rate)
    }

    /// Lets another process make the step that was this one's turn.
    func yield(_ cursor: CampaignCursor) async throws { try await store.yield(cursor) }

    private func campaign(_ id: UUID) async throws -> Campaign? {
        if let campaign = known.withLock({ $0[id] }) { return campaign }
        guard let campaign = try await store.campaign(id) else { return nil }
        known.withLock { known in
            // Those that others finished are never heard of again here.
            if known.count >= 100 { known.removeAll() }
            known[id] = campaign
        }
        return campaign
    }
}
