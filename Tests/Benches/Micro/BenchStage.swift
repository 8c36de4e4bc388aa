import AMQP
import Dispatch
import Logging
import Messaging
import PushProtocol
import PushSending
import ServiceLifecycle
import Synchronization

/// A sender's whole stage between a bus and a provider that answer at once.
struct BenchStage {
    let pushes: Int
    let targets: Int
    let provider: Provider

    /// Returns when every push is settled. Valgrind does not survive an asynchronous `main`.
    func run() {
        let settled = DispatchSemaphore(value: 0)
        Task {
            await settleAll()
            settled.signal()
        }
        settled.wait()
    }

    private func settleAll() async {
        let logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        let wire: any PushWire
        let answer: ProviderResponse
        switch provider {
        case .apns: (wire, answer) = (APNsWire(topic: "com.example.app"), .apnsAccepted)
        case .fcm: (wire, answer) = (FCMWire(project: "example"), .fcmAccepted)
        }
        let gateway = ProviderGateway(
            wire: wire, credentials: NoCredential(), transport: AcceptingTransport(answer: answer))
        let key = LaneKey(app: BenchPush.app, environment: .production)
        let handler = PushStageHandler(
            provider: provider, lanes: PushLanes([key: gateway], provider: provider, logger: logger), logger: logger)
        let queue = WorkQueue.senderPushes(provider, .interactive, BenchPush.app)
        let bus = BenchBus(
            queue: queue.name, pushes: pushes, template: PushTemplate(targets: targets, provider: provider))
        let stage = Stage(
            service: "sender", queues: [queue], policy: handler.policy, bus: bus, handler: handler, logger: logger)
        let running = Task { try? await stage.run() }
        await bus.whenSettled()
        running.cancel()
        await running.value
    }
}

/// Certificates need none.
private struct NoCredential: CredentialSource {
    func current() async throws(CredentialError) -> Credential {
        Credential(authorization: nil, generation: 0, mintedAt: .zero)
    }
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential { try await current() }
}

/// Gives everything the same answer.
private struct AcceptingTransport: ProviderTransport {
    let answer: ProviderResponse

    var generation: Int { 0 }

    func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportAnswer] {
        batch.entries.map { _ in .success(answer) }
    }

    func reconnect(from generation: Int) {}
}

/// Lends the pushes it was made with, as many at a time as a broker's connection brings, and confirms at once.
private final class BenchBus: MessageBus {
    private struct State {
        var next = 0
        var settled = 0
        var continuation: AsyncStream<[AMQPDelivery]>.Continuation?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let queue: String
    private let pushes: Int
    private let template: PushTemplate
    private let state = Mutex(State())

    init(queue: String, pushes: Int, template: PushTemplate) {
        self.queue = queue
        self.pushes = pushes
        self.template = template
    }

    func subscribe(queue: String, prefetch: UInt16) -> BusSubscription {
        let (stream, continuation) = AsyncStream<[AMQPDelivery]>.makeStream()
        state.withLock { $0.continuation = continuation }
        lend(Int(prefetch))
        return BusSubscription(deliveries: stream) { continuation.finish() }
    }

    /// A consumer that was cancelled is lent nothing: the next one gets it.
    private func lend(_ count: Int) {
        state.withLock { state in
            let range = state.next..<min(state.next + count, pushes)
            guard let continuation = state.continuation, !range.isEmpty else { return }
            if case .enqueued = continuation.yield(range.map(delivery)) { state.next = range.upperBound }
        }
    }

    private func delivery(_ number: Int) -> AMQPDelivery {
        AMQPDelivery(
            queue: queue, tag: AMQPDeliveryTag(generation: 1, value: UInt64(number + 1)), redelivered: false,
            exchange: "pushes", routingKey: "apns.interactive.family-portal",
            properties: AMQPProperties(contentType: "application/json"),
            body: template.body(number))
    }

    func acknowledge(_ tags: [AMQPDeliveryTag]) {
        let waiter = state.withLock { state in
            state.settled += tags.count
            guard state.settled == pushes else { return nil as CheckedContinuation<Void, Never>? }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
        lend(tags.count)
    }

    func reject(_ tags: [AMQPDeliveryTag]) {}
    func requeue(_ tags: [AMQPDeliveryTag]) {}

    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        messages.map { _ in .confirmed }
    }

    func whenSettled() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.settled < pushes { state.waiter = continuation }
                return state.settled >= pushes
            }
            if isOver { continuation.resume() }
        }
    }
}
