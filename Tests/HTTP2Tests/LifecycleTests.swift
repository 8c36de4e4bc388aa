import HTTP2
import HTTP2Server
import Logging
import NIOCore
import NIOPosix
import Testing
import TestSupport

/// Start, replacement and shutdown of clients and connections.
@Suite(.timeLimit(.minutes(2)))
struct LifecycleTests {
    @Test func `shutdown completes open requests and fails waiting ones`() async throws {
        let gate = Gate()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 3),
            handler: { _ in
                await gate.pass()
                return [.respond(status: 200)]
            }
        ) { harness in
            async let outcomes = harness.sendMany(5)
            try await eventually("three in flight, two waiting") {
                harness.client.statistics.openStreams == 3 && harness.client.statistics.waiting == 2
            }
            async let end: Void = harness.client.shutdown()
            try await eventually("none wait") { harness.client.statistics.waiting == 0 }
            let late = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            #expect(late == .closed)
            gate.open()
            await end
            let result = await outcomes
            #expect(result.filter { $0.status == 200 }.count == 3)
            #expect(result.filter { $0.error == .closed }.count == 2)
            try await eventually("all connections are closed") { harness.server.connections.isEmpty }
            await harness.client.shutdown()
        }
    }

    /// Runs `body` with a client on a known event loop, connected to a server that answers 200.
    private func onALoop(_ body: (any EventLoop, HTTP2Client) async throws -> Void) async throws {
        let server = try await HTTP2Server.start(
            tls: try TestCertificates.shared().serverTLS, logger: testLogger()
        ) { _ in [.respond(status: 200)] }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let client = try HTTP2Client(
            endpoint: try TestCertificates.shared().endpoint(port: server.port), eventLoopGroup: loop,
            logger: testLogger())
        try await body(loop, client)
        await client.shutdown()
        await server.shutdown()
    }

    @Test func `a task that awaits responses on the client's loop stays on its thread`() async throws {
        try await onALoop { loop, client in
            #expect(!loop.inEventLoop)
            await withTaskExecutorPreference(EventLoopExecutor(loop)) {
                #expect(loop.inEventLoop)
                for _ in 0..<3 {
                    let answer = try? await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
                    #expect(answer?.status == 200)
                    #expect(loop.inEventLoop)
                }
                // Child tasks run on the loop too.
                let isThere = await withTaskGroup { group in
                    group.addTask { loop.inEventLoop }
                    return await group.next()
                }
                #expect(isThere == true)
            }
            #expect(!loop.inEventLoop)
        }
    }

    @Test func `tasks that never end leave the loop time for its sockets`() async throws {
        try await onALoop { loop, client in
            let executor = EventLoopExecutor(loop)
            let busy = (0..<2).map { _ in
                Task(executorPreference: executor) { while !Task.isCancelled { await Task.yield() } }
            }
            defer { for task in busy { task.cancel() } }
            let answer = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
            #expect(answer.status == 200)
        }
    }

    @Test func `shutdown does not wait for a connection in progress`() async throws {
        let endpoint = HTTP2Endpoint(host: "192.0.2.1")
        let client = try HTTP2Client(endpoint: endpoint, logger: testLogger())
        let task = Task { try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20)) }
        try await eventually("the request waits or the network is unreachable") {
            client.statistics.waiting == 1 || client.statistics.connectFailures > 0
        }
        await client.shutdown()
        await #expect(throws: HTTP2Error.self) { try await task.value }
    }

    @Test func `retired connections finish their requests and accept no more`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(handler: { request in
            log.begin(request)
            if request.path == "/held" { await gate.pass() }
            return [.respond(status: 200)]
        }) { harness in
            async let held = harness.send("/held")
            try await eventually("it is in flight") { log.count == 1 }
            harness.client.retireConnections()
            _ = try await harness.send("/next")
            #expect(log.requests.map(\.connection) == [1, 2])
            gate.open()
            let answer = try await held
            #expect(answer.status == 200)
            try await eventually("the old connection is closed") { harness.server.connections.map(\.id) == [2] }
        }
    }

    @Test func `requests waiting for a stream fail unsent when connections are retired`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 1),
            handler: { request in
                log.begin(request)
                if request.path == "/held" { await gate.pass() }
                return [.respond(status: 200)]
            }
        ) { harness in
            async let held = harness.send("/held")
            try await eventually("it is in flight") { log.count == 1 }
            async let waiting = harness.sendMany(3)
            try await eventually("three wait") { harness.client.statistics.waiting == 3 }
            harness.client.retireConnections()
            for answer in await waiting {
                guard case .notProcessed(let failure) = answer.error else { Issue.record("\(answer)"); continue }
                #expect(failure.code == .retired && answer.error?.isSafeToResend == true)
            }
            let next = try await harness.send("/next")
            #expect(next.status == 200)
            #expect(log.requests.map(\.path) == ["/held", "/next"])
            gate.open()
            let answer = try await held
            #expect(answer.status == 200)
        }
    }

    @Test func `a request refused by a retired connection is not resent on the next`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(handler: { request in
            log.begin(request)
            guard request.path != "/next" else { return [.respond(status: 200)] }
            await gate.pass()
            return [.reset(.refusedStream)]
        }) { harness in
            async let held = harness.sendMany(1)
            try await eventually("it is in flight") { log.count == 1 }
            harness.client.retireConnections()
            let next = try await harness.send("/next")
            #expect(next.status == 200)
            gate.open()
            guard case .notProcessed(let failure) = await held.first?.error else {
                Issue.record("\(await held)")
                return
            }
            #expect(failure.code == .retired)
            #expect(log.requests.map(\.path) == ["/0", "/next"])
        }
    }

    @Test func `a server sends GOAWAY at shutdown and its clients reconnect`() async throws {
        let certificates = try TestCertificates.shared()
        let first = try await HTTP2Server.start(tls: certificates.serverTLS, logger: testLogger()) { _ in
            [.respond(status: 200)]
        }
        let client = try HTTP2Client(
            endpoint: certificates.endpoint(port: first.port), configuration: .testing, logger: testLogger())
        _ = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
        await first.shutdown()
        #expect(await client.settledStatistics().goAways == 1)
        let second = try await HTTP2Server.start(
            port: first.port, tls: certificates.serverTLS, logger: testLogger()
        ) { _ in [.respond(status: 204)] }
        let response = try await client.execute(HTTP2Request(path: "/"), deadline: .seconds(20))
        #expect(response.status == 204)
        await client.shutdown()
        await second.shutdown()
    }

    @Test func `hundreds of clients and connections are freed`() async throws {
        let certificates = try TestCertificates.shared()
        let server = try await HTTP2Server.start(tls: certificates.serverTLS, logger: testLogger()) { request in
            request.path == "/drop" ? [.dropConnection] : [.respond(status: 200)]
        }
        var cores: [ReleaseProbe] = []
        for round in 0..<150 {
            let client = try HTTP2Client(
                endpoint: certificates.endpoint(port: server.port), configuration: .testing, logger: testLogger())
            let request = HTTP2Request(path: round.isMultiple(of: 3) ? "/drop" : "/", body: [1])
            _ = try? await client.execute(request, deadline: .seconds(20))
            await client.shutdown()
            cores.append(ReleaseProbe(client))
        }
        try await eventually("all connections are closed") { server.connections.isEmpty }
        try await eventually("all clients are freed") { cores.allSatisfy { $0.isGone } }
        await server.shutdown()
    }
}
