import AMQP
import Dispatch
import Logging
import Messaging
import Providers
import PushProtocol
import PushSending
import ServiceLifecycle
import Synchronization

/// A complete sender stage between a simulated bus and provider that answer immediately.
struct BenchStage {
    let pushes: Int
    let targets: Int
    let provider: Provider
    /// Whether the stage notes each notification for the census, and reports them at the end.
    var isCounted = false

    /// Returns when every push is acknowledged. Valgrind does not support an asynchronous `main`.
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
        let codec: any ProviderCodec
        let answer: ProviderResponse
        switch provider {
        case .apns: (codec, answer) = (APNsCodec(topic: "com.example.app"), .apnsAccepted)
        case .fcm: (codec, answer) = (FCMCodec(project: "example"), .fcmAccepted)
        case .webpush: preconditionFailure("no bench sends Web Push")
        }
        let gateway = ProviderGateway(
            codec: codec, credentials: NoCredential(), transport: AcceptingTransport(answer: answer))
        let route = ProviderRoute(app: BenchPush.app, environment: .production)
        let handler = PushStageHandler(
            provider: provider, routes: ProviderRoutes([route: gateway], provider: provider, logger: logger),
            logger: logger)
        let queue = WorkQueue.senderPushes(provider, .interactive, BenchPush.app)
        let bus = BenchBus(
            queue: queue.name, pushes: pushes, template: PushTemplate(targets: targets, provider: provider))
        let census = isCounted ? CensusLog() : nil
        let stage = Stage(
            service: "sender", queues: [queue], policy: handler.policy, bus: bus, handler: handler, census: census,
            logger: logger)
        let running = Task { try? await stage.run() }
        await bus.whenSettled()
        running.cancel()
        await running.value
        if let census {
            let reporter = CensusReporter(service: "sender", log: census, bus: bus, oldest: { nil }, logger: logger)
            await reporter.report()
        }
    }
}

/// Client certificates need no credential.
private struct NoCredential: CredentialSource {
    func current() async throws(CredentialError) -> Credential {
        Credential(authorization: nil, generation: 0, mintedAt: .zero)
    }
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential { try await current() }
}

/// Answers every request with the same response.
private struct AcceptingTransport: ProviderTransport {
    let answer: ProviderResponse

    var generation: Int { 0 }

    func send(
        _ batch: ProviderRequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportResult] {
        batch.entries.map { _ in .success(answer) }
    }

    func reconnect(from generation: Int) {}
}

/// Delivers its pushes up to the prefetch, and confirms every publish immediately.
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
        deliver(Int(prefetch))
        return BusSubscription(deliveries: stream) { continuation.finish() }
    }

    /// Nothing is delivered to a cancelled consumer.
    private func deliver(_ count: Int) {
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
        deliver(tags.count)
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
