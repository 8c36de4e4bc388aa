import Messaging
import PushProtocol

/// Stores the answers of the APNs sender to requests about broadcast channels.
struct ChannelAnswerHandler: StageHandler {
    let store: ChannelStore
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp

    func decode(_ inbound: Inbound) throws(WireError) -> ChannelAnswer {
        let answer = try ChannelAnswer.decode(wireBody: inbound.body)
        try answer.check(routingKey: inbound.routingKey)
        return answer
    }

    func handle(_ batch: [Delivery<ChannelAnswer>]) async throws -> [Verdict] {
        try await store.keep(batch.map(\.message), now: try await now())
        return batch.map { _ in .done }
    }
}
