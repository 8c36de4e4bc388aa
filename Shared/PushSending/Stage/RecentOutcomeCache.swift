import FoundationEssentials
import Messaging
import PushProtocol
import Synchronization

/// Caches the recent outcomes of this process, so that a redelivered push is not sent twice.
///
/// RabbitMQ redelivers unacknowledged pushes after a reconnect. With the cache, only a crash of the process leads to
/// duplicates.
///
/// A push can also be published twice, because its publisher received no confirm. During an outage of the provider each
/// copy waits in retry levels of its own, and the second may be handled long after the first was accepted. So outcomes
/// are kept until the last attempt of such a copy: 75 minutes with the default ``RetryPolicy``.
///
/// The capacity bounds the memory, and the lifetime adds none: expired outcomes stay in the ring until they are
/// overwritten. A sender with more than 11 targets a second overwrites an outcome before its lifetime ends, with 1,000 a
/// second after 50 seconds.
///
/// Also marks pushes in flight, from ``markInFlight(_:)`` to ``clearInFlight(_:)``. If a push is redelivered meanwhile,
/// its second handling waits for the first, and then finds its outcomes.
package final class RecentOutcomeCache: Sendable {
    struct KnownOutcomes: Equatable {
        let outcomes: [Outcome]
        /// The indices of targets without a cached outcome.
        fileprivate let missing: Set<Int>

        func isMissing(_ target: Int) -> Bool { missing.contains(target) }
    }

    private struct InFlight {
        var pushes: Set<UUID> = []
        /// Handlings that wait for a push of another one.
        var waiting: [CheckedContinuation<Void, Never>] = []

        func contains(anyOf others: [Delivery<Push>]) -> Bool {
            // Under little load nothing else is in flight.
            !pushes.isEmpty && others.contains { pushes.contains($0.message.trace.id) }
        }
    }

    private let inFlight = Mutex(InFlight())
    private let lifetime: Duration
    private let clock: SenderClock
    private let ring: Mutex<RecentOutcomeRing>

    /// - Parameter lifetime: how long to keep an outcome. By default until the last attempt of a copy of its push.
    package init(
        capacity: Int = 50_000, lifetime: Duration = RetryPolicy().latestAttempt, clock: SenderClock = .system
    ) {
        ring = Mutex(RecentOutcomeRing(capacity: capacity))
        self.lifetime = lifetime
        self.clock = clock
    }

    /// Marks all `pushes` as in flight at once, after other handlings of any of them.
    ///
    /// A waiting handling has no marked push, so two handlings cannot deadlock. Request deadlines bound the wait.
    func markInFlight(_ pushes: [Delivery<Push>]) async {
        while !mark(pushes) { await somePushEnds(pushes) }
    }

    /// Removes the marks of ``markInFlight(_:)``. Call it after ``store(_:of:)``.
    func clearInFlight(_ pushes: [Delivery<Push>]) {
        let waiting = inFlight.withLock { inFlight in
            for push in pushes { inFlight.pushes.remove(push.message.trace.id) }
            defer { inFlight.waiting = [] }
            return inFlight.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The number of handlings that wait for another one.
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
                // The other handling may have ended meanwhile.
                guard inFlight.contains(anyOf: pushes) else { return true }
                inFlight.waiting.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    /// The cached outcomes of each push; `nil` for a push without any.
    func outcomes(of pushes: [Delivery<Push>]) -> [KnownOutcomes?] {
        let now = clock.uptime()
        var knownOutcomes = [KnownOutcomes?](repeating: nil, count: pushes.count)
        ring.withLock { ring in
            for (index, push) in pushes.enumerated() {
                let outcomes = ring.outcomes(of: push.message.trace.id, now: now)
                // Nearly every push is new.
                if !outcomes.isEmpty { knownOutcomes[index] = Self.knownOutcomes(of: push.message, outcomes) }
            }
        }
        return knownOutcomes
    }

    private static func knownOutcomes(of push: Push, _ outcomes: [Outcome]) -> KnownOutcomes {
        let known = Dictionary(outcomes.map { (TargetKey($0), $0) }) { first, _ in first }
        return KnownOutcomes(
            outcomes: push.targets.compactMap { known[TargetKey($0)] },
            missing: Set(push.targets.indices.filter { known[TargetKey(push.targets[$0])] == nil }))
    }

    func store(_ pushResults: PushResults, of pushes: [Delivery<Push>]) {
        let expires = RecentOutcomeRing.seconds(clock.uptime() + lifetime)
        let (outcomes, pushIndices) = (pushResults.finished.outcomes, pushResults.finished.pushIndices)
        ring.withLock { ring in
            for index in pushResults.newIndices {
                ring.append(outcomes[index], of: pushes[pushIndices[index]].message.trace.id, expires: expires)
            }
        }
    }

    private struct TargetKey: Hashable {
        var notification: UUID
        var device: UUID?

        init(_ outcome: Outcome) { (notification, device) = (outcome.notification, outcome.device) }
        init(_ target: Push.Target) { (notification, device) = (target.notification, target.device) }
    }
}
