import Synchronization
import PushProtocol
import Testing
import Tracing

@testable import TraceExport

/// Spans, their parents and the decision to export them.
struct TracerTests {
    private let finished = Finished()
    private static let remote = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func tracer(ratio: Double = 1) -> SpanTracer {
        SpanTracer(sampler: TraceSampler(ratio: ratio)) { [finished] in finished.add($0) }
    }

    private func context(_ headers: [String: String]) -> InstrumentationContext {
        var context = InstrumentationContext.topLevel
        tracer().extract(headers, into: &context, using: Headers())
        return context
    }

    private func headers(_ span: RecordedSpan) -> [String: String] {
        var headers: [String: String] = [:]
        tracer().inject(span.context, into: &headers, using: Headers())
        return headers
    }

    @Test func `a span continues the trace of the headers, and a child that of its parent`() throws {
        let tracer = tracer()
        let parent = tracer.startSpan(
            "parent", context: context(["traceparent": Self.remote, "tracestate": "v=1"]), ofKind: .consumer)
        let child = tracer.startSpan("child", context: parent.context, ofKind: .client)
        child.end()
        parent.end()
        let (second, first) = (try #require(finished.all.first), try #require(finished.all.last))
        #expect(first.trace.text == "0af7651916cd43dd8448eb211c80319c")
        #expect(first.parent?.text == "b7ad6b7169203331")
        #expect(first.traceState == "v=1" && second.traceState == "v=1")
        #expect(second.trace == first.trace && second.parent == first.id && second.id != first.id)
        #expect(headers(parent) == ["traceparent": "00-\(first.trace.text)-\(first.id.text)-01", "tracestate": "v=1"])
    }

    @Test func `headers without a valid traceparent leave the context empty, also with a tracestate`() {
        #expect(context(["traceparent": "00-x", "tracestate": "v=1"]).isEmpty)
        #expect(context([:]).isEmpty)
    }

    @Test func `the upstream's decision holds, whatever the ratio`() {
        let unsampled = context(["traceparent": Self.remote.dropLast(1) + "0"])
        tracer(ratio: 1).startSpan("a", context: unsampled).end()
        #expect(finished.all.isEmpty)
        tracer(ratio: 0).startSpan("b", context: context(["traceparent": Self.remote])).end()
        #expect(finished.all.map(\.name) == ["b"])
    }

    @Test func `a failed span is exported although its trace is not sampled, and what it causes is sampled`() {
        let tracer = tracer(ratio: 0)
        let parent = tracer.startSpan("parent", context: .topLevel)
        #expect(headers(parent)["traceparent"]?.hasSuffix("-00") == true)
        let child = tracer.startSpan("child", context: parent.context)
        child.setStatus(SpanStatus(code: .error, message: "Unregistered"))
        #expect(headers(child)["traceparent"]?.hasSuffix("-01") == true)
        child.end()
        parent.end()
        #expect(finished.all.map(\.name) == ["child"])
        #expect(finished.all.first?.isSampled == false)
    }

    @Test func `a child of a failed span keeps the decision of the trace`() {
        let tracer = tracer(ratio: 0)
        let parent = tracer.startSpan("parent", context: .topLevel)
        parent.setStatus(SpanStatus(code: .error))
        tracer.startSpan("child", context: parent.context).end()
        #expect(finished.all.isEmpty)
    }

    @Test func `the share of sampled traces is the ratio`() {
        func share(_ ratio: Double) -> Int {
            let sampler = TraceSampler(ratio: ratio)
            return (0..<10_000).count { _ in sampler.isSampled(TraceID.random()) }
        }
        #expect(share(0) == 0)
        #expect(share(1) == 10_000)
        // Ten standard deviations.
        #expect((2_067...2_933).contains(share(0.25)))
        let quarter = TraceSampler(ratio: 0.25)
        #expect(quarter.isSampled(TraceID(high: .max, low: 0xff3f_ffff_ffff_ffff)!))
        #expect(!quarter.isSampled(TraceID(high: 0, low: 0x0040_0000_0000_0000)!))
    }

    @Test func `only the first end counts, and nothing changes afterwards`() {
        let span = tracer().startSpan("a", context: .topLevel)
        span.end()
        span.attributes["late"] = "x"
        span.operationName = "b"
        span.end()
        #expect(finished.all.map(\.name) == ["a"])
        #expect(finished.all.first?.attributes.isEmpty == true)
        #expect(!span.isRecording)
    }

    @Test func `links keep the context of other spans, up to a limit`() {
        let tracer = tracer()
        let span = tracer.startSpan("a", context: .topLevel)
        for _ in 0..<200 {
            span.addLink(SpanLink(context: context(["traceparent": Self.remote]), attributes: [:]))
        }
        span.addLink(SpanLink(context: .topLevel, attributes: [:]))
        span.end()
        #expect(finished.all.first?.links.count == RecordedSpan.maximumLinks)
        #expect(finished.all.first?.links.first?.target.text == Self.remote)
    }

    @Test func `an error is recorded by its type, without its text`() {
        struct Secretive: Error { let text = "token" }
        let span = tracer().startSpan("a", context: .topLevel)
        span.recordError(Secretive())
        span.end()
        let event = finished.all.first?.events.first
        #expect(event?.attributes.get("exception.type") == .string("Secretive"))
        #expect(event?.attributes.count == 1)
    }
}

/// The finished spans, in order.
final class Finished: Sendable {
    private let spans = Mutex<[SpanRecord]>([])
    var all: [SpanRecord] { spans.withLock { $0 } }
    func add(_ span: SpanRecord) { spans.withLock { $0.append(span) } }
}

private struct Headers: Extractor, Injector {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
}
