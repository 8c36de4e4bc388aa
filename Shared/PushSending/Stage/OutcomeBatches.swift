import FoundationEssentials
import Messaging
import PushProtocol

/// How the outcomes of pushes that were handled together travel: what was accepted in as few messages as hold it, since
/// that is nearly everything and each message costs the broker a write; of all else one message for each push and
/// disposition, and one for what was accepted elsewhere.
struct OutcomeBatches {
    /// What became of one push.
    struct Settled {
        /// As it was delivered, since a push has many parts to copy.
        let delivery: Delivery<Push>
        let outcomes: [Outcome]
        /// How its lane fares, for outcomes that are evidence.
        let pulse: LanePulse?
        /// Whether the provider took it for every target that is finished, where it was to be sent; no, when none is.
        let isPlainlyAccepted: Bool

        init(delivery: Delivery<Push>, outcomes: [Outcome], pulse: LanePulse?) {
            self.delivery = delivery
            self.outcomes = outcomes
            self.pulse = pulse
            isPlainlyAccepted = !outcomes.isEmpty && outcomes.allSatisfy(\.isPlainlyAccepted)
        }
    }

    /// One message, and the places of the pushes that it speaks of.
    struct Batch {
        let places: [Int]
        let routingKey: String
        let outcomes: Outcomes
    }

    /// The messages that tell all of `settled`, in a stable order.
    static func batches(_ settled: [Settled]) -> [Batch] {
        var batches: [Batch] = []
        var piles: [Pile] = []
        for place in settled.indices {
            let delivery = settled[place].delivery
            if settled[place].isPlainlyAccepted, let last = piles.indices.last, piles[last].isOfLane(of: delivery),
                piles[last].add(settled[place].outcomes, of: delivery, place)
            {
                continue
            }
            var accepted = settled[place].outcomes
            if !settled[place].isPlainlyAccepted {
                let others = accepted.filter { !$0.isPlainlyAccepted }
                accepted.removeAll { !$0.isPlainlyAccepted }
                for (routingKey, outcomes) in messages(others, of: delivery.message, pulse: settled[place].pulse) {
                    batches.append(Batch(places: [place], routingKey: routingKey, outcomes: outcomes))
                }
            }
            guard !accepted.isEmpty else { continue }
            if let last = piles.lastIndex(where: { $0.isOfLane(of: delivery) }) {
                if piles[last].add(accepted, of: delivery, place) { continue }
                batches.append(piles.remove(at: last).batch)
            }
            var pile = Pile(of: delivery, room: min(settled.count - place, Push.maximumTargets))
            _ = pile.add(accepted, of: delivery, place)
            piles.append(pile)
        }
        return batches + piles.map(\.batch)
    }

    /// Acceptances of one lane that leave together.
    private struct Pile {
        /// The first of the pushes: the message is its effect in the eyes of who follows a trace.
        private let first: Delivery<Push>
        private var outcomes: [Outcome] = []
        private var places: [Int] = []
        /// What the message's id follows from: the other pushes, and the devices.
        private var ids: [UUID] = []

        /// - Parameter room: for how many pushes to set some aside.
        init(of first: Delivery<Push>, room: Int) {
            self.first = first
            outcomes.reserveCapacity(room)
            places.reserveCapacity(room)
            ids.reserveCapacity(2 * room)
        }

        func isOfLane(of other: Delivery<Push>) -> Bool {
            first.message.environment == other.message.environment && first.message.app == other.message.app
        }

        /// False when there is no room for `more`; an empty pile has room for any push's.
        mutating func add(_ more: [Outcome], of delivery: Delivery<Push>, _ place: Int) -> Bool {
            guard outcomes.isEmpty || outcomes.count + more.count <= Push.maximumTargets else { return false }
            if !places.isEmpty { ids.append(delivery.message.id) }
            places.append(place)
            outcomes += more
            for target in more.indices { if let device = more[target].device { ids.append(device) } }
            return true
        }

        var batch: Batch {
            let push = first.message
            let origin = Outcomes.Origin(push.provider)
            let id = DerivedID.uuid5(push.trace.id, Outcome.Answer.Disposition.accepted.rawValue, ids: ids)
            return Batch(
                places: places, routingKey: RoutingKey.outcomes(origin, .accepted),
                outcomes: Outcomes(
                    trace: push.trace.next(id: id), app: push.app, origin: origin, environment: push.environment,
                    lane: push.lane, outcomes: outcomes))
        }
    }

    private struct Kind: Hashable, Comparable {
        let disposition: Outcome.Answer.Disposition
        let isElsewhere: Bool

        init(_ outcome: Outcome) {
            disposition = outcome.answer.disposition
            isElsewhere = outcome.elsewhere != nil
        }

        static func < (a: Kind, b: Kind) -> Bool {
            a.disposition == b.disposition ? !a.isElsewhere && b.isElsewhere : a.disposition < b.disposition
        }

        var word: String { isElsewhere ? "outcomes.elsewhere" : disposition.rawValue }

        func routingKey(_ origin: Outcomes.Origin) -> String {
            isElsewhere ? RoutingKey.acceptedElsewhere(origin) : RoutingKey.outcomes(origin, disposition)
        }

        /// Whether it may be evidence against tokens, which is weighed by how the lane fares.
        var isEvidence: Bool {
            switch disposition {
            case .unregistered, .rejected: true
            case .accepted, .throttled, .misconfigured, .expired, .skipped, .unknown: false
            }
        }
    }

    /// Batches `outcomes` of `push`, in a stable order.
    ///
    /// A batch's id follows from the push and from which targets it speaks of, so that a redelivery that settles the
    /// same targets makes the same message, and one that settles others makes another.
    static func messages(
        _ outcomes: [Outcome], of push: Push, pulse: LanePulse? = nil
    ) -> [(routingKey: String, outcomes: Outcomes)] {
        let origin = Outcomes.Origin(push.provider)
        return groups(outcomes).map { kind, outcomes in
            let id = DerivedID.uuid5(push.trace.id, kind.word, ids: outcomes.compactMap(\.device))
            return (
                kind.routingKey(origin),
                Outcomes(
                    trace: push.trace.next(id: id), app: push.app, origin: origin, environment: push.environment,
                    lane: push.lane, pulse: kind.isEvidence ? pulse : nil, outcomes: outcomes)
            )
        }
    }

    private static func groups(_ outcomes: [Outcome]) -> [(Kind, [Outcome])] {
        guard let first = outcomes.first.map(Kind.init) else { return [] }
        // Most pushes have outcomes of one kind.
        if outcomes.allSatisfy({ Kind($0) == first }) { return [(first, outcomes)] }
        return Dictionary(grouping: outcomes, by: Kind.init).sorted { $0.key < $1.key }
    }
}

extension Outcome {
    /// Whether the provider took it where it was to be sent.
    var isPlainlyAccepted: Bool {
        if case .accepted = answer { elsewhere == nil } else { false }
    }
}
