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

        mutating func take(_ outcome: Outcome) {
            guard outcome.isProvidersWord else { return }
            answered += 1
            if outcome.isPlainlyAccepted { acceptedAt = max(acceptedAt ?? outcome.at, outcome.at) }
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

    /// Counts the outcomes of pushes that went over `lane` together, and tells by the place of each push how the lane fares
    /// with those up to its own; nothing where no outcome is evidence that has to be weighed by that.
    ///
    /// Not counted are those that are known from an earlier attempt, which were then, and rejections of our own: a rule whose
    /// payloads are too large would make a storm of refused tokens look small.
    func count(_ settlements: PushSettlements, on lane: LaneKey) -> [Int: LanePulse] {
        let minute = clock.now().minute
        let settled = settlements.finished
        var refusedHere = settlements.refusedHere
        let isEvidence = !settled.outcomes.allSatisfy(\.isPlainlyAccepted)
        return counts.withLock { counts in
            var count = counts[lane] ?? Count(minute: minute)
            if count.minute != minute { (count.minute, count.answered) = (minute, 0) }
            defer { counts[lane] = count }
            var pulses: [Int: LanePulse] = [:]
            for index in settled.outcomes.indices {
                let place = settled.places[index]
                if settlements.fresh.contains(index) {
                    if case .rejected = settled.outcomes[index].answer, let ours = refusedHere[place], ours > 0 {
                        refusedHere[place] = ours - 1
                    } else {
                        count.take(settled.outcomes[index])
                    }
                }
                if isEvidence { pulses[place] = pulse(count) }
            }
            return pulses
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
