import AMQP
import Logging
import PushProtocol
import Synchronization
import TestSupport
import Testing
import TraceExport
import Tracing

@testable import Messaging

/// The spans of a stage's messages, and the headers of its outbound messages.
@Suite(.timeLimit(.minutes(1))) struct StageTracingTests {
    private let bus = InMemoryBus(apps: [demo])
    private let next = "token-registry.notifications.interactive"
    private let spans = FinishedSpans()
    private static let upstream = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func withTracedStage(
        _ handler: some StageHandler, ratio: Double = 1, policy: StagePolicy = .test(),
        _ body: () async throws -> Void
    ) async throws {
        let stage = Stage(
            service: "rules", queues: [queue], policy: { _ in policy }, bus: bus, handler: handler,
            tracer: SpanTracer(sampler: TraceSampler(ratio: ratio)) { [spans] in spans.add($0) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await withRunning(stage) { _ in try await body() }
    }

    private func parent(of message: AMQPMessage) -> TraceParent? {
        message.properties.headers[HeaderName.traceparent]?.text.flatMap { TraceParent($0) }
    }

    @Test func `a message continues the upstream's trace, and its outbound continues the message's span`() async throws
    {
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withTracedStage(handler) {
            bus.event(
                "a",
                properties: AMQPProperties(
                    messageID: "m-1", correlationID: "e-1",
                    headers: [
                        HeaderName.traceparent: .text(Self.upstream), HeaderName.tracestate: "v=1",
                    ]))
            try await eventually { bus.isSettled(queue.name) }
        }
        let span = try #require(spans.all.first)
        #expect(spans.all.count == 1)
        #expect(span.trace.text == "0af7651916cd43dd8448eb211c80319c" && span.parent?.text == "b7ad6b7169203331")
        #expect(span.name == "process rules.events" && span.kind == .consumer && span.status == nil)
        let expected: SpanAttributes = [
            "messaging.system": "rabbitmq", "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": "events:demo.happened:rules.events",
            "messaging.rabbitmq.destination.routing_key": "demo.happened", "messaging.message.id": "m-1",
            "messaging.message.conversation_id": "e-1", "messaging.message.body.size": 1, "heliograph.attempt": 1,
            "heliograph.disposition": "done",
        ]
        #expect(span.attributes == expected)
        let sent = try #require(bus.messages(in: next).first)
        #expect(self.parent(of: sent) == TraceParent(trace: span.trace, span: span.id, isSampled: true))
        #expect(sent.properties.headers[HeaderName.tracestate] == "v=1")
        #expect(sent.properties.headers[HeaderName.traceLinks] == nil)
    }

    @Test func `an event without a trace begins one, and another message without one gets no span`() async throws {
        let tracing = StageTracing(tracer: SpanTracer(sampler: TraceSampler(ratio: 1)) { _ in })
        func span(_ queue: WorkQueue, attribute: String? = nil) -> MessageSpan? {
            tracing.span(
                of: Inbound(queue: queue, exchange: "x", routingKey: "y", body: []), attribute: attribute)
        }
        #expect(span(.rulesEvents) != nil)
        #expect(span(.rulesAppEvents(demo)) != nil)
        #expect(span(.rulesCensus) == nil)
        #expect(span(.registryDevices) == nil)
        let continued = try #require(span(.registryDevices, attribute: Self.upstream)?.traceparent)
        #expect(continued.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-"))
    }

    /// The spans of `count` events, each with a trace of its own.
    private func eventSpans(_ count: Int) -> [MessageSpan] {
        let tracing = StageTracing(
            tracer: SpanTracer(sampler: TraceSampler(ratio: 1)) { [spans] in spans.add($0) })
        return (0..<count).compactMap { _ in
            tracing.span(of: Inbound(queue: .rulesEvents, exchange: "x", routingKey: "y", body: []), attribute: nil)
        }
    }

    @Test func `an outbound shared by all messages of a batch is published once, in one trace`() async throws {
        let shared = Outbound.notification("shared")
        let handler = ScriptedHandler { $0.map { _ in .done([shared]) } }
        try await withTracedStage(handler) {
            for number in 1...5 { bus.event("\(number)") }
            try await eventually { bus.isSettled(queue.name) }
        }
        let parents = bus.messages(in: next).compactMap { parent(of: $0)?.span }
        #expect(parents.count == handler.batches.count)
        #expect(Set(parents).isSubset(of: spans.all.map(\.id)))
    }

    @Test func `an outbound of several messages has one parent, and links to a limited number of others`() throws {
        let causes = eventSpans(40)
        let headers = TraceLinks.headers(of: causes)
        #expect(headers[HeaderName.traceparent]?.text == causes[0].traceparent)
        #expect(TraceLinks.traceparents(in: headers) == causes[1...32].compactMap(\.traceparent))
        #expect(TraceLinks.headers(of: [causes[0]])[HeaderName.traceLinks] == nil)
        #expect(TraceLinks.headers(of: []).isEmpty)
    }

    @Test func `the parent of an outbound is the first sampled message, and only sampled ones are linked`() throws {
        let unsampled = StageTracing(tracer: SpanTracer(sampler: TraceSampler(ratio: 0)) { _ in })
        let first = try #require(
            unsampled.span(
                of: Inbound(queue: .rulesEvents, exchange: "x", routingKey: "y", body: []), attribute: nil))
        let sampled = eventSpans(2)
        let headers = TraceLinks.headers(of: [first] + sampled)
        #expect(headers[HeaderName.traceparent]?.text == sampled[0].traceparent)
        #expect(TraceLinks.traceparents(in: headers) == [sampled[1].traceparent])
        #expect(TraceLinks.headers(of: [first])[HeaderName.traceparent]?.text == first.traceparent)
    }

    @Test func `the receiver of such a message links its span to the others`() throws {
        let other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let tracing = StageTracing(
            tracer: SpanTracer(sampler: TraceSampler(ratio: 1)) { [spans] in spans.add($0) })
        let inbound = Inbound(
            queue: .feedbackOutcomes, exchange: "outcomes", routingKey: "apns.accepted",
            headers: [HeaderName.traceparent: Self.upstream, HeaderName.traceLinks: "\(other),nonsense"], body: [])
        tracing.span(of: inbound, attribute: nil)?.end()
        #expect(spans.all.first?.links.map(\.target.text) == [other])
    }

    @Test func `shared work is a child of the first message, with links in both directions`() async throws {
        let causes = eventSpans(3)
        let result = await MessageSpan.share(causes, "look up") { 7 }
        for cause in causes { cause.end() }
        #expect(result == 7)
        let shared = try #require(spans.all.first { $0.name == "look up" })
        let messages = spans.all.filter { $0.name != "look up" }
        let parent = try #require(messages.first { $0.id == shared.parent })
        let others = messages.filter { $0.id != parent.id }
        #expect(others.count == 2 && shared.trace == parent.trace)
        #expect(Set(shared.links.map(\.target.span)) == Set(others.map(\.id)))
        #expect(others.allSatisfy { $0.links.map(\.target.span) == [shared.id] })
        #expect(shared.attributes.get("messaging.batch.message_count") == .int64(3))
    }

    @Test func `a failed message is exported although its trace is not sampled, and samples its outbound`() async throws
    {
        let handler = ScriptedHandler { batch in
            batch.map { delivery in
                if delivery.message == "bad" { delivery.span?.fail("Unregistered") }
                return .done([.notification(delivery.message)])
            }
        }
        try await withTracedStage(handler, ratio: 0) {
            bus.event("good")
            bus.event("bad")
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(spans.all.map(\.status) == [SpanStatus(code: .error, message: "Unregistered")])
        let sampled = Dictionary(
            uniqueKeysWithValues: bus.messages(in: next).map { ($0.text, parent(of: $0)?.isSampled) })
        #expect(sampled == ["good": false, "bad": true])
    }

    @Test func `undecodable, failing, retried and dead-lettered messages have failed spans`() async throws {
        let handler = ScriptedHandler { batch in
            guard !batch.contains(where: { $0.message == "throw" }) else { throw Outage.Problem() }
            return batch.map { delivery in
                switch delivery.message {
                case "retry": Verdict(.retry(after: .seconds(5), .test))
                case "dead": Verdict(.deadLetter(.test))
                case "later": Verdict(.postpone(after: .seconds(5), .test))
                default: Verdict(.discard(.test))
                }
            }
        }
        try await withTracedStage(handler) {
            for text in ["poison", "throw", "retry", "dead", "later", "drop"] { bus.event(text) }
            try await eventually { bus.isSettled(queue.name) }
        }
        let failures = spans.all.compactMap { $0.status?.message }
        #expect(failures.sorted() == ["handler-failed", "not-json", "test-reason", "test-reason"])
        let dispositions = spans.all.compactMap { span -> String? in
            guard case .string(let text)? = span.attributes.get("heliograph.disposition") else { return nil }
            return text
        }
        #expect(dispositions.sorted() == ["dead-letter", "dead-letter", "discard", "postpone", "retry", "retry"])
    }

    @Test func `without a tracer, messages have no span and outbound keeps its headers`() async throws {
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler) { _ in
            bus.event("a", properties: AMQPProperties(headers: [HeaderName.traceparent: .text(Self.upstream)]))
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(handler.handled.allSatisfy { $0.span == nil && $0.traceparent == Self.upstream })
        let headers = try #require(bus.messages(in: next).first).properties.headers
        #expect(headers[HeaderName.traceparent] == "00-1-2-01" && headers.count == 1)
    }

    @Test func `log lines have the trace id of a well-formed traceparent`() {
        #expect(LogMetadata.traceID(Self.upstream) == "0af7651916cd43dd8448eb211c80319c")
        for text in ["", "00-1-2-01", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"] {
            #expect(LogMetadata.traceID(text) == nil)
        }
    }
}

extension Outage {
    fileprivate struct Problem: Error {}
}

private final class FinishedSpans: Sendable {
    private let spans = Mutex<[SpanRecord]>([])
    var all: [SpanRecord] { spans.withLock { $0 } }
    func add(_ span: SpanRecord) { spans.withLock { $0.append(span) } }
}
