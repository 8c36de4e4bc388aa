import HTTP2
import HTTP2Server
import Testing
import TestSupport

/// The peer's SETTINGS, the client's cap, and the growth of the pool.
@Suite(.timeLimit(.minutes(2)))
struct StreamLimitTests {
    @Test func `a limit lowered with requests in flight delays new streams until the count is below it`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(handler: { request in
            log.begin(request)
            defer { log.end() }
            await gate.pass()
            return [.respond(status: 200)]
        }) { harness in
            async let first = harness.sendMany(10)
            try await eventually("ten requests in flight") { log.count == 10 }
            harness.server.setMaximumConcurrentStreams(1)
            try await eventually("the limit is known") { harness.client.statistics.streamLimit == 1 }
            async let second = harness.sendMany(50)
            try await eventually("fifty wait") { harness.client.statistics.waiting == 50 }
            #expect(await harness.statistics().openStreams == 10)
            #expect(log.count == 10)
            log.resetPeak()
            gate.open()
            let outcomes = await first + second
            #expect(outcomes.map(\.status) == Array(repeating: 200, count: 60))
            #expect(log.requests.suffix(50).map(\.stream) == log.requests.suffix(50).map(\.stream).sorted())
            #expect(await harness.statistics().resends == 0)
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test func `with a limit of one, streams are opened one at a time`() async throws {
        let log = RequestLog()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                log.begin(request)
                defer { log.end() }
                await Task.yield()
                return [.respond(status: 200)]
            }
        ) { harness in
            let outcomes = await harness.sendMany(40)
            #expect(outcomes.allSatisfy { $0.status == 200 })
            #expect(log.peak == 1)
            #expect(harness.server.connections.map(\.peakStreams) == [1])
        }
    }

    @Test func `a server that starts with one stream gets one request until it raises the limit`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                if log.begin(request) == 1 { await gate.pass() }
                return [.changeMaximumConcurrentStreams(1000), .respond(status: 200)]
            }
        ) { harness in
            async let outcomes = harness.sendMany(20)
            try await eventually("one is open and the others wait") {
                log.count == 1 && harness.client.statistics.waiting == 19
            }
            #expect(await harness.statistics().openStreams == 1)
            gate.open()
            #expect(await outcomes.allSatisfy { $0.status == 200 })
            #expect(await harness.statistics().streamLimit == 1000)
        }
    }

    @Test func `startsWithOneStream limits a connection to one stream until the first 2xx response`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            configuration: .testing.with { $0.startsWithOneStream = true },
            handler: { request in
                let number = log.begin(request)
                if number == 2 { await gate.pass() }
                return [.respond(status: number == 1 ? 403 : 200)]
            }
        ) { harness in
            async let outcomes = harness.sendMany(20)
            try await eventually("a 403 does not lift the limit") {
                log.count == 2 && harness.client.statistics.waiting == 18
            }
            #expect(await harness.statistics().openStreams == 1)
            gate.open()
            #expect(await outcomes.compactMap(\.status).sorted() == Array(repeating: 200, count: 19) + [403])
        }
    }

    @Test func `the client's own cap applies below a larger limit of the peer`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            configuration: .testing.with { $0.maximumConcurrentStreams = 7 },
            handler: { request in
                log.begin(request)
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let outcomes = harness.sendMany(20)
            try await eventually("seven are open") { log.count == 7 && harness.client.statistics.waiting == 13 }
            gate.open()
            #expect(await outcomes.allSatisfy { $0.status == 200 })
            #expect(harness.server.connections.map(\.peakStreams) == [7])
        }
    }

    @Test func `a limit of zero delays all requests until it is raised`() async throws {
        try await Harness.run(settings: HTTP2ServerSettings(maximumConcurrentStreams: 0)) { harness in
            async let outcomes = harness.sendMany(3)
            try await eventually("the connection is ready") { harness.client.statistics.connections == 1 }
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send(deadline: .milliseconds(30)) }
            #expect(error == .deadlineExceeded(written: false))
            harness.server.setMaximumConcurrentStreams(2)
            #expect(await outcomes.allSatisfy { $0.status == 200 })
        }
    }

    @Test func `connections are added while all are full and requests wait, up to the maximum`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 2),
            configuration: .testing.with { $0.maximumConnections = 3 },
            handler: { request in
                if request.path != "/first" {
                    log.begin(request)
                    await gate.pass()
                }
                return [.respond(status: 200)]
            }
        ) { harness in
            _ = try await harness.send("/first")
            async let outcomes = harness.sendMany(10)
            try await eventually("three connections are full and four requests wait") {
                log.count == 6 && harness.client.statistics.waiting == 4
            }
            #expect(await harness.statistics().connections == 3)
            gate.open()
            #expect(await outcomes.allSatisfy { $0.status == 200 })
            #expect(await harness.statistics().connectionsOpened == 3)
        }
    }

    @Test func `requests above maximumWaiting are refused at once`() async throws {
        let gate = Gate()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            configuration: .testing.with { $0.maximumWaiting = 5 },
            handler: { _ in
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let first = harness.send()
            try await eventually("one is open") { harness.client.statistics.openStreams == 1 }
            async let others = harness.sendMany(5)
            try await eventually("five wait") { harness.client.statistics.waiting == 5 }
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .notProcessed(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .queueFull)
            gate.open()
            #expect(try await first.status == 200)
            #expect(await others.allSatisfy { $0.status == 200 })
        }
    }
}
