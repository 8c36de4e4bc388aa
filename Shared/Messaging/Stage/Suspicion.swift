internal import AMQP
internal import PushProtocol

/// Which deliveries may be the one that kills the process.
///
/// A message that was delivered before and not settled is handled alone, so that if the process dies again the broker
/// counts it against that message and not against its neighbours. Once a few such messages in a row did no harm, the
/// others of that return are believed; one that came back several times never is.
struct Suspicion: Sendable {
    /// How many must survive before the rest are believed.
    static let enough = 3
    /// A message the broker had back so often stays alone, whatever its neighbours did.
    static let hardenedCount: Int64 = 3

    /// Whether a message that was not begun is kept while its queue is paused. Otherwise others may have it; but the broker
    /// counts every return, and a queue that is paused again and again would make suspects of all that wait in it, and dead
    /// letters in the end.
    static func mustStay(_ delivery: AMQPDelivery) -> Bool { delivery.deliveryCount >= hardenedCount - 1 }

    /// Whether another return might cost too much of the broker's delivery limit. From half of the limit on a message is
    /// moved to a retry level instead of being given back; the other half is left for crashes and broken connections.
    static func isNearLimit(_ delivery: AMQPDelivery) -> Bool { delivery.deliveryCount >= Topology.deliveryLimit / 2 }

    private var survivors = 0

    func suspects(_ delivery: AMQPDelivery) -> Bool {
        guard delivery.redelivered else { return false }
        return survivors < Suspicion.enough || delivery.deliveryCount >= Suspicion.hardenedCount
    }

    /// A suspect was handled and this process still lives.
    mutating func survived() { survivors += 1 }

    /// Fresh messages come again: what is redelivered after them is another return, with another cause.
    mutating func sawFresh() { survivors = 0 }
}
