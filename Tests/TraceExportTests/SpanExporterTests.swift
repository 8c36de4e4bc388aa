import Logging
import Synchronization
import TestSupport
import PushProtocol
import Testing

@testable import HTTPSFetch
@testable import TraceExport

/// Requests of the exporter, and its reaction to responses.
struct SpanExporterTests {
    private let receiver = Receiver()
    private let clock = ManualUptime()
    private let log = CapturingLogger()
    private let exporter: SpanExporter

    init() throws {
        let endpoint = try TraceEndpoint(
            traces: nil, base: "https://otel.example:4318/", headers: "authorization=Basic%20c2VjcmV0")
        exporter = SpanExporter(
            to: try #require(endpoint), of: TraceResource(service: "rules", instance: "i", version: "1"),
            limits: SpanBatcher.Limits(batch: 2), send: receiver.answer, uptime: { [clock] in clock.now },
            logger: log.logger)
    }

    private func add(_ names: String) { for span in [SpanRecord].named(names) { exporter.add(span) } }

    @Test func `a batch is one request with the configured headers`() async throws {
        add("ab")
        await exporter.sendDue()
        let request = try #require(receiver.requests.first)
        #expect(receiver.requests.count == 1)
        #expect(request.method == "POST" && request.url == "https://otel.example:4318/v1/traces")
        #expect(request.headers.map(\.name) == ["authorization", "Content-Type"])
        #expect(request.headers.map(\.value) == ["Basic c2VjcmV0", "application/x-protobuf"])
        #expect(
            request.body
                == TraceRequest.encode(
                    .named("ab"), of: TraceResource(service: "rules", instance: "i", version: "1"),
                    scope: "heliograph"))
    }

    @Test func `nothing is sent without spans, and before a batch is due`() async {
        await exporter.sendDue()
        add("a")
        await exporter.sendDue()
        #expect(receiver.requests.isEmpty)
        clock.advance(by: .seconds(1))
        await exporter.sendDue()
        #expect(receiver.requests.count == 1)
    }

    @Test(arguments: [429, 502, 503, 504])
    func `an overloaded receiver gets the batch again after its Retry-After`(status: Int) async {
        receiver.script([.success(FetchResponse(status: status, headers: [("retry-after", "7")], body: []))])
        add("abc")
        await exporter.sendDue()
        #expect(receiver.requests.count == 1)
        clock.advance(by: .seconds(6))
        await exporter.sendDue()
        #expect(receiver.requests.count == 1)
        clock.advance(by: .seconds(1))
        await exporter.sendDue()
        #expect(receiver.requests.count == 3)
        #expect(receiver.requests[0].body == receiver.requests[1].body)
    }

    @Test(arguments: [400, 401, 404, 500])
    func `another error ends the batch, and the next one is sent`(status: Int) async {
        receiver.script([.success(FetchResponse(status: status, headers: [], body: []))])
        add("abcd")
        await exporter.sendDue()
        #expect(receiver.requests.count == 2)
        #expect(receiver.requests[0].body != receiver.requests[1].body)
    }

    @Test func `an unreachable receiver is logged once, and its return too, without the headers`() async {
        let down = FetchError(code: .unreachable, origin: "https://otel.example:4318", detail: "refused")
        receiver.script([.failure(down), .failure(down)])
        add("ab")
        for _ in 0..<3 {
            await exporter.sendDue()
            clock.advance(by: .seconds(60))
        }
        #expect(log.lines.map(\.level) == [.warning, .notice])
        #expect(log.lines.first?.metadata["error"] == "https://otel.example:4318: refused")
        #expect(receiver.requests.count == 3)
    }

    @Test func `at the end, partial batches are sent without a wait`() async {
        add("abc")
        await exporter.sendDue(isFinal: true)
        #expect(receiver.requests.count == 2)
    }

    @Test func `the address of traces precedes the general one, and is used as it is`() throws {
        func url(_ traces: String?, _ base: String?) throws -> String? {
            try TraceEndpoint(traces: traces, base: base, headers: nil)?.url
        }
        #expect(try url(nil, nil) == nil)
        #expect(try url(nil, "http://localhost:4318") == "http://localhost:4318/v1/traces")
        #expect(try url("https://a/x", "https://b") == "https://a/x")
    }

    @Test func `headers are pairs with percent-encoded values`() throws {
        let headers = try TraceEndpoint.parse(" a=b , c=d%3De%20f,g=,,h=%E2%82%AC")
        #expect(headers.map(\.name) == ["a", "c", "g", "h"])
        #expect(headers.map(\.value) == ["b", "d=e f", "", "€"])
        for text in ["a", "=b", "a=%2", "a=%zz", "a=%ff"] {
            #expect(throws: TraceEndpoint.MalformedHeaders.self) { try TraceEndpoint.parse(text) }
        }
    }
}

/// Answers requests as scripted, and with 200 afterwards.
private final class Receiver: Sendable {
    private struct State {
        var requests: [FetchRequest] = []
        var answers: [Result<FetchResponse, FetchError>] = []
    }

    private let state = Mutex(State())

    var requests: [FetchRequest] { state.withLock { $0.requests } }

    func script(_ answers: [Result<FetchResponse, FetchError>]) { state.withLock { $0.answers = answers } }

    @Sendable func answer(_ request: FetchRequest) throws(FetchError) -> FetchResponse {
        let answer = state.withLock { state -> Result<FetchResponse, FetchError> in
            state.requests.append(request)
            return state.answers.isEmpty
                ? .success(FetchResponse(status: 200, headers: [], body: [])) : state.answers.removeFirst()
        }
        return try answer.get()
    }
}

private final class ManualUptime: Sendable {
    private let time = Mutex(Duration.zero)
    var now: Duration { time.withLock { $0 } }
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
}
