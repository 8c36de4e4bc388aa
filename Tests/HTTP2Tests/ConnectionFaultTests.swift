import HTTP2
import HTTP2Server
import Testing
import TestSupport

/// Connections that break, become unresponsive, or fail to open.
@Suite(.timeLimit(.minutes(2)))
struct ConnectionFaultTests {
    @Test func `a connection lost after the request was written makes it ambiguous`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: { log.begin($0) == 1 ? [.dropConnection] : [.respond(status: 200)] }) {
            harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .ambiguous(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .connectionLost)
            let response = try await harness.send()
            #expect(response.status == 200)
            #expect(log.count == 2)
            #expect(await harness.statistics().connectionsOpened == 2)
        }
    }

    @Test func `a connection lost before the request was written makes it not processed`() async throws {
        let log = RequestLog()
        try await Harness.run(
            settings: HTTP2ServerSettings(initialWindowSize: 0), configuration: .testing.with { $0.maximumResends = 1 },
            handler: {
                log.begin($0); return [.respond(status: 200)]
            }
        ) { harness in
            let task = Task { await harness.sendMany(1).first?.error }
            for connection in 1...2 {
                try await eventually("the stream is open and its body blocked") {
                    harness.server.connections.first { $0.id == connection }?.openStreams == 1
                }
                harness.server.performOnAll([.dropConnection])
            }
            let error = await task.value
            guard case .notProcessed(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .connectionLost)
            #expect(await harness.statistics().resends == 1)
            #expect(log.count == 0)
        }
    }

    @Test func `an unresponsive peer is detected by PING and its connection replaced`() async throws {
        let log = RequestLog()
        try await Harness.run(
            configuration: .testing.with {
                $0.pingAfter = .milliseconds(50)
                $0.pingTimeout = .seconds(2)
            },
            handler: { log.begin($0) == 1 ? [.stall] : [.respond(status: 200)] }
        ) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .ambiguous(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .unresponsive)
            #expect(await harness.statistics().pingTimeouts == 1)
            let response = try await harness.send()
            #expect(response.status == 200)
        }
    }

    @Test func `without PINGs, an unresponsive connection is drained after an unanswered request`() async throws {
        let log = RequestLog()
        try await Harness.run(
            configuration: .testing.with {
                $0.pingAfter = nil
                $0.pingTimeout = .milliseconds(50)
            },
            handler: { log.begin($0) == 1 ? [.stall] : [.respond(status: 200)] }
        ) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send(deadline: .seconds(2)) }
            #expect(error == .deadlineExceeded(written: true))
            let response = try await harness.send()
            #expect(response.status == 200)
            #expect(log.requests.map(\.connection) == [1, 2])
        }
    }

    @Test func `a slow response does not drain a connection with other reads`() async throws {
        let log = RequestLog()
        try await Harness.run(
            configuration: .testing.with {
                $0.pingAfter = nil
                $0.pingTimeout = .seconds(10)
            },
            handler: { log.begin($0) == 1 ? [.wait(.seconds(20)), .respond(status: 200)] : [.respond(status: 200)] }
        ) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send(deadline: .seconds(2)) }
            #expect(error == .deadlineExceeded(written: true))
            let response = try await harness.send()
            #expect(response.status == 200)
            #expect(log.requests.map(\.connection) == [1, 1])
        }
    }

    @Test func `a slow peer that answers PING keeps its connection`() async throws {
        let gate = Gate()
        try await Harness.run(
            configuration: .testing.with {
                $0.pingAfter = .milliseconds(20)
                $0.pingTimeout = .seconds(10)
            },
            handler: { _ in
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let answer = harness.send()
            try await eventually("several PINGs came") { harness.server.connections.first?.pings ?? 0 >= 3 }
            gate.open()
            let response = try await answer
            #expect(response.status == 200)
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test func `no PING is sent when PINGs are disabled`() async throws {
        try await Harness.run(
            configuration: .testing.with { $0.pingAfter = nil },
            handler: { _ in [.wait(.milliseconds(100)), .respond(status: 200)] }
        ) { harness in
            _ = try await harness.send()
            #expect(harness.server.connections.map(\.pings) == [0])
        }
    }

    @Test func `a server's own PING is answered`() async throws {
        try await Harness.run(handler: { _ in [.ping, .respond(status: 200)] }) { harness in
            for _ in 1...3 { _ = try await harness.send() }
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test func `a refused connection fails waiting requests at once and is retried later`() async throws {
        let certificates = try TestCertificates.shared()
        let first = try await HTTP2Server.start(tls: certificates.serverTLS, logger: testLogger()) { _ in
            [.respond(status: 200)]
        }
        await first.shutdown()
        let client = try HTTP2Client(
            endpoint: certificates.endpoint(port: first.port), configuration: .testing, logger: testLogger())
        let error = await #expect(throws: HTTP2Error.self) {
            try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
        }
        if case .notProcessed(let failure) = error {
            #expect(failure.code == .connectFailed)
            #expect(failure.detail.contains("localhost:\(first.port)"))
        } else {
            Issue.record("\(error as Any)")
        }
        let second = try await HTTP2Server.start(
            port: first.port, tls: certificates.serverTLS, logger: testLogger()
        ) { _ in [.respond(status: 200)] }
        let response = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
        #expect(response.status == 200)
        #expect(await client.settledStatistics().connectFailures == 1)
        await client.shutdown()
        await second.shutdown()
    }

    @Test func `a host name that does not resolve is a connect failure`() async throws {
        let client = try HTTP2Client(
            endpoint: HTTP2Endpoint(host: "nobody.invalid"), configuration: .testing, logger: testLogger())
        let error = await #expect(throws: HTTP2Error.self) {
            try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
        }
        if case .notProcessed(let failure) = error {
            #expect(failure.code == .connectFailed)
        } else {
            Issue.record("\(error as Any)")
        }
        await client.shutdown()
    }

    @Test func `exhausted stream ids lead to a new connection`() async throws {
        let log = RequestLog()
        let certificates = try TestCertificates.shared()
        let server = try await HTTP2Server.start(tls: certificates.serverTLS, logger: testLogger()) { request in
            log.begin(request)
            return [.respond(status: 200)]
        }
        let client = try HTTP2Client.nearlyExhausted(
            endpoint: certificates.endpoint(port: server.port), firstStream: UInt32(Int32.max) - 4)
        for _ in 1...7 {
            let response = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
            #expect(response.status == 200)
        }
        #expect(log.requests.map(\.connection) == [1, 1, 1, 2, 2, 2, 3])
        #expect(log.requests.map(\.stream).max() == .max)
        #expect(await client.settledStatistics().resends == 0)
        await client.shutdown()
        await server.shutdown()
    }
}
