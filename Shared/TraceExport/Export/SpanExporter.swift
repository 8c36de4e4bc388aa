package import HTTPSFetch
package import Logging
import ServiceLifecycle
import Metrics
import Synchronization

/// Sends finished spans to a receiver in batches: OTLP over HTTP, in Protocol Buffers
/// (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
///
/// Adding a span takes a lock for a moment and never waits. Spans are dropped while the buffer is full.
package final class SpanExporter: Service {
    /// The pause between looks at the buffer.
    private static let pace = Duration.milliseconds(200)
    /// The time limit for the spans that remain at shutdown.
    private static let finalLimit = Duration.seconds(3)

    /// Sends a request; replaced by tests.
    typealias Send = @Sendable (FetchRequest) async throws(FetchError) -> FetchResponse

    private let endpoint: TraceEndpoint
    private let resource: TraceResource
    private let send: Send
    private let uptime: @Sendable () -> Duration
    private let batcher: Mutex<SpanBatcher>
    private let exported: Counter
    private let refused: Counter
    private let dropped: Counter
    private let isTroubled = Mutex(false)
    private let logger: Logger

    /// - Parameter client: Closed with the exporter.
    package convenience init(
        to endpoint: TraceEndpoint, of resource: TraceResource, over client: HTTPSFetch, logger: Logger
    ) {
        let start = ContinuousClock.now
        self.init(
            to: endpoint, of: resource,
            send: { (request) async throws(FetchError) in try await client.send(request) },
            uptime: { ContinuousClock.now - start }, logger: logger)
    }

    init(
        to endpoint: TraceEndpoint, of resource: TraceResource, limits: SpanBatcher.Limits = SpanBatcher.Limits(),
        send: @escaping Send, uptime: @escaping @Sendable () -> Duration, logger: Logger
    ) {
        self.endpoint = endpoint
        self.resource = resource
        self.send = send
        self.uptime = uptime
        self.logger = logger
        batcher = Mutex(SpanBatcher(limits))
        func counter(_ result: String) -> Counter {
            Counter(label: "heliograph_trace_spans_total", dimensions: [("result", result)])
        }
        (exported, refused, dropped) = (counter("exported"), counter("refused"), counter("dropped"))
    }

    /// Takes a finished span.
    package func add(_ span: SpanRecord) {
        let now = uptime()
        batcher.withLock { $0.add(span, now: now) }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while (try? await Task.sleep(for: Self.pace)) != nil { await self.sendDue() }
        }
        await sendRest()
    }

    /// Sends the batches that are due.
    func sendDue(isFinal: Bool = false) async {
        var isAvailable = true
        while isAvailable, !Task.isCancelled {
            let now = uptime()
            guard case .send(let spans) = batcher.withLock({ $0.next(now: now, isFinal: isFinal) }) else { break }
            let result = await export(spans)
            isAvailable = result.isAvailable
            let end = uptime()
            batcher.withLock { $0.record(result, of: spans, now: end) }
        }
        count()
    }

    /// Sends all spans within ``finalLimit``, and drops the others.
    private func sendRest() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.sendDue(isFinal: true) }
            group.addTask { try? await Task.sleep(for: Self.finalLimit) }
            await group.next()
            group.cancelAll()
        }
        batcher.withLock { $0.dropAll() }
        count()
    }

    private func export(_ spans: [SpanRecord]) async -> SpanBatcher.ExportResult {
        let request = FetchRequest(
            method: "POST", url: endpoint.url,
            headers: endpoint.headers + [("Content-Type", "application/x-protobuf")],
            body: TraceRequest.encode(spans, of: resource, scope: "heliograph"))
        do throws(FetchError) {
            let result = SpanBatcher.ExportResult(try await send(request))
            report(result.problem)
            return result
        } catch {
            guard error.code != .cancelled else { return .unavailable(after: nil) }
            report("\(error)")
            return error.isRetriable ? .unavailable(after: nil) : .refused
        }
    }

    /// Logs the first problem of a series, and its end.
    private func report(_ problem: String?) {
        let before = isTroubled.withLock { isTroubled in
            defer { isTroubled = problem != nil }
            return isTroubled
        }
        switch (before, problem) {
        case (false, let problem?):
            logger.warning(
                "Spans are not accepted; counting further ones only", metadata: ["error": "\(problem)"])
        case (true, nil): logger.notice("Spans are accepted again")
        case (true, .some), (false, nil): break
        }
    }

    private func count() {
        let tally = batcher.withLock { $0.takeTally() }
        if tally.exported > 0 { exported.increment(by: tally.exported) }
        if tally.refused > 0 { refused.increment(by: tally.refused) }
        if tally.dropped > 0 { dropped.increment(by: tally.dropped) }
    }
}

extension SpanBatcher.ExportResult {
    /// The meaning of a response's status (OTLP specification, §otlphttp-response).
    init(_ response: FetchResponse) {
        switch response.status {
        case 200..<300: self = .accepted(rejected: TraceResponse.rejectedSpans(in: response.body))
        case 429, 502, 503, 504:
            self = .unavailable(after: response["retry-after"].flatMap { Int($0) }.map { .seconds(max(0, $0)) })
        default: self = .refused
        }
    }

    /// The problem for the log; `nil` if all spans were accepted.
    fileprivate var problem: String? {
        switch self {
        case .accepted(rejected: 0): nil
        case .accepted(let rejected): "the receiver refused \(rejected) spans of a batch"
        case .refused: "the receiver refused a batch; check its address and its headers"
        case .unavailable: "the receiver is overloaded or unavailable"
        }
    }

    fileprivate var isAvailable: Bool {
        switch self {
        case .accepted, .refused: true
        case .unavailable: false
        }
    }
}
