import FoundationEssentials
import Messaging
import PushProtocol
import Synchronization

/// What this process settled lately, by push: after a reconnect the broker delivers again what was not acknowledged
/// yet, and those targets are answered from here instead of being sent twice.
///
/// It bounds duplicates to the death of the process (`messaging-and-data` §3.2). The oldest make room.
///
/// A push is also marked while it is in flight, from ``begin(_:)`` to ``end(_:)``. The broker may deliver it again in
/// this time, when the consumer's connection breaks. The second handling waits for the first, and then finds its outcomes.
package final class SettledTargets: Sendable {
    /// What is known of a push.
    struct Recollection: Equatable {
        let outcomes: [Outcome]
        /// The places of the targets of which nothing is known.
        fileprivate let others: Set<Int>

        func isMissing(_ target: Int) -> Bool { others.contains(target) }
    }

    private struct InFlight {
        var pushes: Set<UUID> = []
        /// Handlings that wait until a push has ended.
        var waiting: [CheckedContinuation<Void, Never>] = []

        func contains(anyOf others: [Delivery<Push>]) -> Bool {
            // Under little load nothing else is in flight.
            !pushes.isEmpty && others.contains { pushes.contains($0.message.trace.id) }
        }
    }

    private let inFlight = Mutex(InFlight())
    private let lifetime: Duration
    private let clock: SenderClock
    private let ring: Mutex<SettledRing>

    /// `capacity` counts targets.
    package init(capacity: Int = 50_000, lifetime: Duration = .seconds(600), clock: SenderClock = .system) {
        ring = Mutex(SettledRing(capacity: capacity))
        self.lifetime = lifetime
        self.clock = clock
    }

    /// Marks `pushes` as in flight, all at once: waits as long as another handling has one of them in flight. A wait holds
    /// no push of its own, so that two handlings cannot wait for each other. It ends with the other handling, whose requests
    /// have deadlines.
    func begin(_ pushes: [Delivery<Push>]) async {
        while !mark(pushes) { await somePushEnds(pushes) }
    }

    /// Ends what ``begin(_:)`` began. Called after ``remember(_:of:)``.
    func end(_ pushes: [Delivery<Push>]) {
        let waiting = inFlight.withLock { inFlight in
            for push in pushes { inFlight.pushes.remove(push.message.trace.id) }
            defer { inFlight.waiting = [] }
            return inFlight.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// How many handlings wait for another to end.
    var waiting: Int { inFlight.withLock(\.waiting.count) }

    private func mark(_ pushes: [Delivery<Push>]) -> Bool {
        inFlight.withLock { inFlight in
            guard !inFlight.contains(anyOf: pushes) else { return false }
            for push in pushes { inFlight.pushes.insert(push.message.trace.id) }
            return true
        }
    }

    private func somePushEnds(_ pushes: [Delivery<Push>]) async {
        await withCheckedContinuation { continuation in
            let isOver = inFlight.withLock { inFlight in
                // The other handling may have ended since.
                guard inFlight.contains(anyOf: pushes) else { return true }
                inFlight.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// What was settled lately of each of `pushes`; `nil` where that is nothing.
    func outcomes(of pushes: [Delivery<Push>]) -> [Recollection?] {
        let now = clock.uptime()
        var recollections = [Recollection?](repeating: nil, count: pushes.count)
        ring.withLock { ring in
            for (place, push) in pushes.enumerated() {
                let outcomes = ring.outcomes(of: push.message.trace.id, now: now)
                // Nearly every push is new.
                if !outcomes.isEmpty { recollections[place] = Self.recollection(of: push.message, outcomes) }
            }
        }
        return recollections
    }

    private static func recollection(of push: Push, _ outcomes: [Outcome]) -> Recollection {
        let known = Dictionary(outcomes.map { (Key($0), $0) }) { first, _ in first }
        return Recollection(
            outcomes: push.targets.compactMap { known[Key($0)] },
            others: Set(push.targets.indices.filter { known[Key(push.targets[$0])] == nil }))
    }

    /// Remembers what was settled of `pushes`.
    func remember(_ settlements: PushSettlements, of pushes: [Delivery<Push>]) {
        let expires = SettledRing.seconds(clock.uptime() + lifetime)
        let (outcomes, places) = (settlements.finished.outcomes, settlements.finished.places)
        ring.withLock { ring in
            for index in settlements.fresh {
                ring.append(outcomes[index], of: pushes[places[index]].message.trace.id, expires: expires)
            }
        }
    }

    private struct Key: Hashable {
        var notification: UUID
        var device: UUID?

        init(_ outcome: Outcome) { (notification, device) = (outcome.notification, outcome.device) }
        init(_ target: Push.Target) { (notification, device) = (target.notification, target.device) }
    }
}
