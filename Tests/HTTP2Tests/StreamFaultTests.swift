import HTTP2
import HTTP2Server
import Testing
import TestSupport

/// Failures of one stream that leave the connection and other streams intact.
@Suite(.timeLimit(.minutes(2)))
struct StreamFaultTests {
    @Test func `a refused stream is resent transparently`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: { log.begin($0) == 1 ? [.reset(.refusedStream)] : [.respond(status: 200)] }) {
            harness in
            let response = try await harness.send(body: Array("whole".utf8))
            #expect(response.status == 200)
            #expect(log.requests.map(\.body) == [Array("whole".utf8), Array("whole".utf8)])
            #expect(await harness.statistics().resends == 1)
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test func `a repeatedly refused stream is reported as not processed`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.reset(.refusedStream)]
        }) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .notProcessed(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .refused)
            #expect(log.count == 4)
        }
    }

    @Test(arguments: [HTTP2ErrorCode.internalError, .cancel, .enhanceYourCalm, .noError, .init(rawValue: 99)])
    func `a stream reset for another reason is ambiguous and not resent`(code: HTTP2ErrorCode) async throws {
        let log = RequestLog()
        try await Harness.run(handler: { request in
            log.begin(request)
            return request.path == "/reset" ? [.reset(code)] : [.respond(status: 200)]
        }) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send("/reset") }
            guard case .ambiguous(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .reset)
            #expect(failure.detail.contains("\(code)"))
            let response = try await harness.send("/fine")
            #expect(response.status == 200)
            #expect(log.count == 2)
            #expect(await harness.statistics().connectionsOpened == 1)
            #expect(await harness.statistics().resets == [code: 1])
        }
    }

    @Test func `a complete response counts even if the stream is reset after it`() async throws {
        try await Harness.run(handler: { _ in [.respond(status: 413, body: [1]), .reset(.noError)] }) { harness in
            let response = try await harness.send()
            #expect(response.status == 413)
        }
    }

    @Test func `a deadline resets the stream and leaves the connection in use`() async throws {
        try await Harness.run(handler: { $0.path == "/never" ? [] : [.respond(status: 200)] }) { harness in
            _ = try await harness.send("/first")
            let error = await #expect(throws: HTTP2Error.self) {
                try await harness.send("/never", deadline: .seconds(2))
            }
            #expect(error == .deadlineExceeded(written: true))
            try await eventually("the server received CANCEL") {
                harness.events.all.contains(.streamReset(connection: 1, stream: 3, code: .cancel))
            }
            let response = try await harness.send("/fine")
            #expect(response.status == 200)
            #expect(await harness.statistics().openStreams == 0)
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test func `every request has its own deadline`() async throws {
        let gate = Gate()
        try await Harness.run(handler: { request in
            if request.path != "/first" { await gate.pass() }
            return [.respond(status: 200)]
        }) { harness in
            _ = try await harness.send("/first")
            async let patient = harness.sendMany(5, deadline: .seconds(20))
            async let hasty = harness.sendMany(5, deadline: .seconds(2))
            #expect(await hasty.allSatisfy { $0.error == .deadlineExceeded(written: true) })
            gate.open()
            #expect(await patient.allSatisfy { $0.status == 200 })
        }
    }

    @Test func `a request that got no stream before its deadline was not written`() async throws {
        let gate = Gate()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { _ in
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let first = harness.send()
            try await eventually("one is open") { harness.client.statistics.openStreams == 1 }
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send(deadline: .milliseconds(30)) }
            #expect(error == .deadlineExceeded(written: false))
            #expect(error?.isSafeToResend == true)
            gate.open()
            let answer = try await first
            #expect(answer.status == 200)
        }
    }

    @Test func `a request without a stream while others are answered fails with noStream`() async throws {
        let (first, second) = (Gate(), Gate())
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                await (request.path == "/first" ? first : second).pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let answered = harness.send("/first")
            try await eventually("one is open") { harness.client.statistics.openStreams == 1 }
            async let unanswered = harness.send("/second")
            try await eventually("one waits") { harness.client.statistics.waiting == 1 }
            async let outcome = harness.sendMany(1, deadline: .seconds(2))
            try await eventually("two wait") { harness.client.statistics.waiting == 2 }
            first.open()
            guard case .notProcessed(let failure) = await outcome.first?.error else {
                Issue.record("\(await outcome)")
                return second.open()
            }
            #expect(failure.code == .noStream)
            second.open()
            #expect(try await [answered.status, unanswered.status] == [200, 200])
        }
    }

    /// A busy machine may use up a deadline, so the exchange has several attempts. A client that counts the wait for
    /// the stream fails in each of them.
    @Test func `a request with a late stream has the full time for its response`() async throws {
        let attempts = 5
        for attempt in 1...attempts {
            let status = try await lateExchange(deadline: .seconds(3), pause: .seconds(2))
            if status == 200 { return }
            if attempt == attempts { Issue.record("no response in \(attempts) attempts") }
        }
    }

    /// Gives a request its stream after `pause`, and its response after another `pause`. Returns the response's status,
    /// and `nil` if the request failed.
    private func lateExchange(deadline: Duration, pause: Duration) async throws -> Int? {
        let (first, late) = (Gate(), Gate())
        return try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                await (request.path == "/first" ? first : late).pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            // Uses requests that get no stream as timers.
            func pass(_ time: Duration) async { _ = await harness.outcome("/unserved", deadline: time) }
            async let firstAnswer = harness.send("/first")
            try await eventually("one is open") { harness.client.statistics.openStreams == 1 }
            async let lateAnswer = harness.outcome("/late", deadline: deadline)
            try await eventually("one waits") { harness.client.statistics.waiting == 1 }
            await pass(pause)
            first.open()
            #expect(try await firstAnswer.status == 200)
            await pass(pause)
            late.open()
            return await lateAnswer.status
        }
    }

    @Test func `cancelling the task resets the stream at once`() async throws {
        try await Harness.run(handler: { $0.path == "/never" ? [] : [.respond(status: 200)] }) { harness in
            let task = Task { await harness.outcome("/never") }
            try await eventually("the server has it") { harness.server.connections.first?.openStreams == 1 }
            task.cancel()
            #expect(await task.value.error == .cancelled(written: true))
            try await eventually("the server received CANCEL") {
                harness.events.all.contains(.streamReset(connection: 1, stream: 1, code: .cancel))
            }
        }
    }

    @Test func `an already cancelled task sends nothing`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.respond(status: 200)]
        }) { harness in
            let gate = Gate()
            let task = Task {
                await gate.pass()
                return await harness.outcome("/")
            }
            task.cancel()
            gate.open()
            #expect(await task.value.error == .cancelled(written: false))
            #expect(log.count == 0)
        }
    }
}
