import FoundationEssentials
import PushProtocol
import Synchronization

/// Counts, minute by minute, what the provider answered on each lane of this process: what its ``LanePulse`` tells.
final class LanePulses: Sendable {
    private struct Count {
        var minute: Timestamp
        var answered = 0
        var acceptedAt: Timestamp?
    }

    private let sender = UUID()
    private let clock: SenderClock
    private let counts = Mutex<[LaneKey: Count]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// A message without outcomes that tells of a storm on the lane of `push`: the round that it was noticed in may
    /// settle nothing that could carry it.
    func message(_ storm: LanePulse.Storm, of push: Push) -> Outcomes {
        var pulse = count([], of: push)
        pulse.storm = storm
        let id = DerivedID.uuid5(
            push.trace.id, "storm-\(storm.since.milliseconds)-\(storm.until.milliseconds)", ids: [])
        return Outcomes(
            trace: push.trace.next(id: id), app: push.app, origin: Outcomes.Origin(push.provider),
            environment: push.environment, lane: push.lane, pulse: pulse, outcomes: [])
    }

    /// Counts the outcomes of one push, and tells how its lane fares with them.
    func count(_ outcomes: [Outcome], of push: Push) -> LanePulse {
        let now = clock.now()
        let key = LaneKey(app: push.app, environment: push.environment)
        return counts.withLock { counts in
            var count = counts[key] ?? Count(minute: now.minute)
            if count.minute != now.minute { (count.minute, count.answered) = (now.minute, 0) }
            for outcome in outcomes where outcome.isProvidersWord {
                count.answered += 1
                if case .accepted = outcome.answer, outcome.elsewhere == nil {
                    count.acceptedAt = max(count.acceptedAt ?? outcome.at, outcome.at)
                }
            }
            counts[key] = count
            return LanePulse(
                sender: sender, minute: count.minute, answered: count.answered, acceptedAt: count.acceptedAt)
        }
    }
}

extension Outcome {
    /// Whether a provider took or refused it: everything else says nothing about how many tokens are good.
    fileprivate var isProvidersWord: Bool {
        switch answer {
        case .accepted, .unregistered, .rejected: true
        case .throttled, .misconfigured, .expired, .skipped, .unknown: false
        }
    }
}
