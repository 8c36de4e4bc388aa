import HTTP2
import HTTP2Server
import Synchronization
import Testing
import TestSupport

/// Requests submitted and awaited together.
@Suite(.timeLimit(.minutes(2)))
struct RequestGroupTests {
    @Test func `responses of a request group come in the order of its requests`() async throws {
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 7),
            handler: { [.respond(status: 200 + Int($0.path.dropFirst())! % 3, body: $0.body)] }
        ) { harness in
            let answers = await harness.client.execute(all: NumberedRequests(count: 300), deadline: .seconds(20))
            for (index, answer) in answers.enumerated() {
                let response = try answer.get()
                #expect(response.status == 200 + index % 3)
                #expect(response.body == Array("body \(index)".utf8))
            }
            #expect(answers.count == 300)
        }
    }

    @Test func `each request has the shared fields and its own`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.respond(status: 200)]
        }) { harness in
            _ = await harness.client.execute(all: NumberedRequests(count: 50), deadline: .seconds(20))
            #expect(Set(log.requests.map { $0.headers["x-shared"] }) == ["same"])
            #expect(Set(log.requests.compactMap { $0.headers["x-own"] }) == Set((0..<50).map { "own \($0)" }))
            #expect(log.requests.allSatisfy { $0.pathNeverIndexed && $0.method == "POST" })
            #expect(Set(log.requests.map(\.path)).count == 50)
        }
    }

    @Test func `a request group without requests returns at once and opens no connection`() async throws {
        try await Harness.run { harness in
            #expect(await harness.client.execute(all: NumberedRequests(count: 0), deadline: .seconds(20)).isEmpty)
            #expect(await harness.statistics().connectionsOpened == 0)
        }
    }

    @Test func `a response can withdraw the waiting requests of its own group only`() async throws {
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { [.respond(status: $0.path == "/0" ? 403 : 200)] }
        ) { harness in
            let cut = NumberedRequests(count: 20, endsAt: 403)
            let answers = await harness.client.execute(all: cut, deadline: .seconds(20))
            #expect(answers[0].status == 403)
            for answer in answers.dropFirst() {
                guard case .failure(.notProcessed(let failure)) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(failure.code == .withdrawn)
            }
            let others = await harness.client.execute(all: NumberedRequests(count: 20), deadline: .seconds(20))
            #expect(others.allSatisfy { $0.status != nil })
        }
    }

    @Test func `a malformed field fails only its own request`() async throws {
        try await Harness.run { harness in
            let answers = await harness.client.execute(
                all: NumberedRequests(count: 3, poison: 1), deadline: .seconds(20))
            #expect(answers.map(\.status) == [200, nil, 200])
            guard case .failure(.invalidRequest) = answers[1] else {
                Issue.record("\(answers[1])")
                return
            }
        }
    }

    @Test func `cancelling ends every request of a group`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 5),
            handler: { request in
                log.begin(request)
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            let sending = Task {
                await harness.client.execute(all: NumberedRequests(count: 30), deadline: .seconds(60))
            }
            try await eventually("five in flight") { log.count == 5 }
            sending.cancel()
            let answers = await sending.value
            #expect(answers.prefix(5).allSatisfy { $0 == .failure(.cancelled(written: true)) })
            #expect(answers.dropFirst(5).allSatisfy { $0 == .failure(.cancelled(written: false)) })
            gate.open()
            #expect(try await harness.send().status == 200)
        }
    }

    @Test func `a full queue refuses all requests of a group`() async throws {
        let configuration = HTTP2ClientConfiguration.testing.with { $0.maximumWaiting = 10 }
        let gate = Gate()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1), configuration: configuration,
            handler: { _ in
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let waiting = harness.client.execute(all: NumberedRequests(count: 11), deadline: .seconds(60))
            try await eventually("ten wait") { harness.client.statistics.waiting == 10 }
            let refused = await harness.client.execute(all: NumberedRequests(count: 2), deadline: .seconds(60))
            for answer in refused {
                guard case .failure(.notProcessed(let failure)) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(failure.code == .queueFull)
            }
            gate.open()
            #expect(await waiting.allSatisfy { $0.status == 200 })
        }
    }

    @Test func `a withheld request is not sent, and its stream goes to the next request`() async throws {
        let gate = Gate()
        let refused = WithheldIndices()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                if request.path == "/0" { await gate.pass() }
                return [.respond(status: 200)]
            }
        ) { harness in
            async let answers = harness.client.execute(
                all: RevocableRequests(count: 4) { index in !refused.indices.withLock { $0.contains(index) } },
                deadline: .seconds(20))
            try await eventually("three wait") { harness.client.statistics.waiting == 3 }
            refused.indices.withLock { $0 = [1, 2] }
            gate.open()
            let received = await answers
            #expect(received.map { (try? $0.get())?.status } == [200, nil, nil, 200])
            for answer in received[1...2] {
                guard case .failure(.notProcessed(let failure)) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(failure.code == .withheld)
            }
        }
    }
}

/// The withheld requests.
private final class WithheldIndices: Sendable {
    let indices = Mutex<Set<Int>>([])
}

/// `POST /0`, `/1` and so on; withheld if `isWanted` returns false.
private struct RevocableRequests: HTTP2Requests {
    let count: Int
    let isWanted: @Sendable (Int) -> Bool

    init(count: Int, isWanted: @escaping @Sendable (Int) -> Bool) {
        self.count = count
        self.isWanted = isWanted
    }

    func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", "POST")
        fields.append(":path", "/\(index)", neverIndexed: true)
    }

    func body(_ index: Int) -> [UInt8] { [] }

    func mayStart(_ index: Int) -> Bool { isWanted(index) }
}

/// `POST /0`, `/1` and so on, each with its own field and body.
private struct NumberedRequests: HTTP2Requests {
    let count: Int
    /// The status that withdraws the other requests.
    var endsAt: Int?
    /// The index of the request with a malformed field.
    var poison: Int?
    private let shared = try? HTTP2FieldBlock([HTTP2Header(name: "x-shared", value: "same")])

    init(count: Int, endsAt: Int? = nil, poison: Int? = nil) {
        self.count = count
        self.endsAt = endsAt
        self.poison = poison
    }

    func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", "POST")
        fields.append(":path", "/\(index)", neverIndexed: true)
        if let shared { fields.append(shared) }
        fields.append("x-own", index == poison ? "a\r\nb: c" : "own \(index)", neverIndexed: true)
    }

    func body(_ index: Int) -> [UInt8] { Array("body \(index)".utf8) }

    func shouldContinue(after status: Int) -> Bool { status != endsAt }
}
