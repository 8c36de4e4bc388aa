import FoundationEssentials
import Messaging
import PushProtocol
import Synchronization

/// Counts, minute by minute, what the provider answered on each lane of this process: what its ``LanePulse`` tells.
final class LanePulses: Sendable {
    private struct Count {
        var minute: Timestamp
        var answered = 0
        var acceptedAt: Timestamp?

        mutating func take(_ outcomes: [Outcome]) {
            for outcome in outcomes where outcome.isProvidersWord {
                answered += 1
                if case .accepted = outcome.answer, outcome.elsewhere == nil {
                    acceptedAt = max(acceptedAt ?? outcome.at, outcome.at)
                }
            }
        }
    }

    private let sender = UUID()
    private let clock: SenderClock
    private let counts = Mutex<[LaneKey: Count]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// A message without outcomes that tells of a storm on the lane of `push`: the round that it was noticed in may
    /// settle nothing that could carry it.
    func message(_ storm: LanePulse.Storm, of push: Push) -> Outcomes {
        var pulse = pulse(of: LaneKey(of: push))
        pulse.storm = storm
        let id = DerivedID.uuid5(
            push.trace.id, "storm-\(storm.since.milliseconds)-\(storm.until.milliseconds)", ids: [])
        return Outcomes(
            trace: push.trace.next(id: id), app: push.app, origin: Outcomes.Origin(push.provider),
            environment: push.environment, lane: push.lane, pulse: pulse, outcomes: [])
    }

    /// Counts the outcomes of pushes that were settled together, and tells how the lane of each fares with those up to
    /// its own; `nil` where no outcome is evidence that has to be weighed by that.
    func count(_ batch: [Delivery<Push>], _ settlements: [PushSettlement]) -> [LanePulse]? {
        let minute = clock.now().minute
        let isEvidence = !settlements.allSatisfy { $0.outcomes.allSatisfy(\.isPlainlyAccepted) }
        return counts.withLock { counts in
            var pulses: [LanePulse] = []
            // Most batches are of one lane.
            var lane: (key: LaneKey, count: Count)?
            for index in batch.indices {
                if lane?.key.isLane(of: batch[index].message) != true {
                    if let lane { counts[lane.key] = lane.count }
                    let key = LaneKey(of: batch[index].message)
                    lane = (key, counts[key] ?? Count(minute: minute))
                }
                guard var count = lane?.count else { continue }
                if count.minute != minute { (count.minute, count.answered) = (minute, 0) }
                count.take(settlements[index].outcomes)
                lane?.count = count
                if isEvidence { pulses.append(pulse(count)) }
            }
            if let lane { counts[lane.key] = lane.count }
            return isEvidence ? pulses : nil
        }
    }

    private func pulse(_ count: Count) -> LanePulse {
        LanePulse(sender: sender, minute: count.minute, answered: count.answered, acceptedAt: count.acceptedAt)
    }

    private func pulse(of lane: LaneKey) -> LanePulse {
        let minute = clock.now().minute
        let known = counts.withLock { $0[lane] }
        guard let known, known.minute == minute else {
            return pulse(Count(minute: minute, acceptedAt: known?.acceptedAt))
        }
        return pulse(known)
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
