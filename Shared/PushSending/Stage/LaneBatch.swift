import Messaging
import PushProtocol

/// Those of the pushes that came together which go over one lane: they are sent, told and settled as one.
struct LaneBatch: Sendable {
    let key: LaneKey
    private(set) var pushes: [Delivery<Push>]
    /// Where each of them is among all that came.
    private(set) var places: [Int]

    /// The lanes of what came, in the order of their first pushes. A push that came twice, as after a lost connection, is in
    /// two batches of its lane: the one waits for the outcomes of the other (``SettledTargets``).
    static func lanes(of batch: [Delivery<Push>]) -> [LaneBatch] {
        guard let first = batch.first.map({ LaneKey(of: $0.message) }) else { return [] }
        // A queue has one app's pushes, and most apps have one environment.
        if batch.count == 1 || batch.allSatisfy({ first.isLane(of: $0) }) && !hasRepeats(batch) {
            return [LaneBatch(key: first, pushes: batch, places: Array(batch.indices))]
        }
        var lanes: [LaneBatch] = []
        for (place, push) in batch.enumerated() {
            let lane = lanes.firstIndex { $0.key.isLane(of: push) && !$0.contains(push) } ?? lanes.count
            if lane == lanes.count { lanes.append(LaneBatch(key: LaneKey(of: push.message), pushes: [], places: [])) }
            lanes[lane].pushes.append(push)
            lanes[lane].places.append(place)
        }
        return lanes
    }

    private static func hasRepeats(_ batch: [Delivery<Push>]) -> Bool {
        Set(batch.lazy.map(\.message.trace.id)).count < batch.count
    }

    private func contains(_ push: Delivery<Push>) -> Bool {
        pushes.contains { $0.message.trace.id == push.message.trace.id }
    }
}

extension LaneKey {
    /// Whether a push goes over this lane. As it was delivered, since a push has many parts to copy.
    fileprivate func isLane(of push: Delivery<Push>) -> Bool {
        environment == push.message.environment && app == push.message.app
    }
}
