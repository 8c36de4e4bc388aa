import Foundation
import HTTP2
import PushProtocol
import ServiceLifecycle
import Testing
import TestSupport

@testable import ProviderSimulator

/// Connection and stream faults, as the senders' HTTP/2 client sees them.
@Suite(.timeLimit(.minutes(2))) struct WireFaultTests {
    static func execute(_ client: HTTP2Client, within deadline: Duration = .seconds(10)) async -> Result<
        Int, HTTP2Error
    > {
        do {
            return .success(try await client.execute(WireTests.push(), deadline: deadline).status)
        } catch {
            return .failure(error)
        }
    }

    /// A client whose connection has had its first accepted push, and so many streams.
    static func withWarm(
        _ port: ProviderPort = .apns(.production), _ body: (WireTests.Listening, HTTP2Client) async throws -> Void
    ) async throws {
        try await WireTests.withListener(port) { listening, client async throws in
            #expect(await Self.execute(client) == .success(200))
            try await body(listening, client)
        }
    }

    @Test(arguments: [
        #""reset":2"#, #""drop":true"#, #""close":true"#,
    ])
    func `a broken stream or connection is an error that may have been processed`(members: String) async throws {
        try await Self.withWarm { listening, client async throws in
            try listening.simulator.play(#"{"provider":"apns",\#(members),"count":1}"#)
            guard case .failure(let error) = await Self.execute(client) else {
                Issue.record("it was answered")
                return
            }
            #expect(!error.isSafeToResend, "\(error)")
            #expect(await Self.execute(client) == .success(200))
        }
    }

    @Test(arguments: [
        #""silence":true"#, #""stall":true"#,
    ])
    func `a silent request ends at its deadline`(members: String) async throws {
        try await Self.withWarm { listening, client async throws in
            try listening.simulator.play(#"{"provider":"apns",\#(members),"count":1}"#)
            #expect(
                await Self.execute(client, within: .milliseconds(300)) == .failure(.deadlineExceeded(written: true)))
        }
    }

    @Test(arguments: [
        #""reset":2"#, #""drop":true"#, #""silence":true"#, #""stall":true"#,
    ]) func `an acceptance with a lost body is an acceptance`(members: String) async throws {
        try await Self.withWarm { listening, client async throws in
            try listening.simulator.play(#"{"provider":"apns",\#(members),"after":"headers","count":1}"#)
            #expect(await Self.execute(client, within: .milliseconds(300)) == .success(200))
        }
    }

    @Test func `a complete response before the connection drops is a response`() async throws {
        try await Self.withWarm { listening, client async throws in
            try listening.simulator.play(#"{"provider":"apns","close":true,"after":"answer","count":1}"#)
            #expect(await Self.execute(client) == .success(200))
            // A request may cross the close of the connection and be lost.
            try await eventually("a second connection", within: .seconds(10)) {
                guard await Self.execute(client) == .success(200) else { return false }
                return listening.simulator.log.requests(of: .apns).last?.request.connection == 2
            }
        }
    }

    @Test(arguments: ["expired", "wrong_name", "unknown_authority", "wrong_protocol", "refuse"])
    func `a scripted handshake fault fails one handshake`(fault: String) async throws {
        try await WireTests.withListener(.google) { listening, client async throws in
            let script = try ProviderJSON.value(of: Array(#"{"port":"fcm","fault":"\#(fault)","count":1}"#.utf8))
            #expect(try listening.simulator.state.handshakes.play(script) == 1)
            let request = HTTP2Request(path: "/token", body: Array("x=y".utf8))
            let first = await #expect(throws: HTTP2Error.self) {
                try await client.execute(request, deadline: .seconds(2))
            }
            #expect(first?.isSafeToResend == true)
            #expect(listening.simulator.log.totals(of: .oauth).requests == 0)
            let second = try listening.client()
            let status = try await second.execute(request, deadline: .seconds(10)).status
            await second.shutdown()
            #expect(status == 400)
        }
    }

    @Test func `an ignored handshake ends at the deadline`() async throws {
        try await WireTests.withListener(.google) { listening, client async throws in
            listening.simulator.state.handshakes.script([.init(fault: .ignore, count: 1)], for: .google)
            await #expect(throws: HTTP2Error.self) {
                try await client.execute(HTTP2Request(path: "/token"), deadline: .milliseconds(500))
            }
        }
    }

    static func withFaultInjection(
        _ listening: WireTests.Listening, _ text: String, _ body: (FaultInjection) async throws -> Void
    ) async throws {
        let faultInjection = FaultInjection()
        let service = ConnectionFaultService(
            faultInjection: faultInjection, simulator: listening.simulator, ports: listening.ports)
        faultInjection.post(try ConnectionFault.read(try ProviderJSON.value(of: Array(text.utf8))))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            try await body(faultInjection)
            group.cancelAll()
        }
    }

    @Test func `repeated GOAWAYs lose no request when unprocessed ones are resent`() async throws {
        try await Self.withWarm { listening, client async throws in
            let script = #"{"port":"apns","goaway":{"last_stream":"graceful","pause_ms":20},"every_ms":40}"#
            try await Self.withFaultInjection(listening, script) { _ async throws in
                var answered = 0
                func connection() -> Int { listening.simulator.log.requests(of: .apns).last?.request.connection ?? 0 }
                while answered <= 8 || connection() <= 4 {
                    switch await Self.execute(client) {
                    case .success(let status): answered += status == 200 ? 1 : 0
                    case .failure(let error):
                        #expect(error.isSafeToResend, "\(error)")
                    }
                }
                let totals = listening.simulator.log.totals(of: .apns)
                #expect(totals.delivered == answered + 1, "what was not answered was not processed")
            }
        }
    }

    @Test(arguments: [#""drop":true"#, #""close":true"#])
    func `after an idle connection ends, the next push opens another`(
        members: String
    ) async throws {
        try await Self.withWarm { listening, client async throws in
            try await Self.withFaultInjection(listening, "{\(members)}") { faultInjection async throws in
                try await eventually("it ended", within: .seconds(5)) { faultInjection.entries[0].isEnded }
                #expect(faultInjection.entries[0].connections == 1)
                // The GOAWAY may not have reached the connection's event loop yet.
                try await eventually("a new connection takes it", within: .seconds(10)) {
                    guard await Self.execute(client) == .success(200) else { return false }
                    return listening.simulator.log.requests(of: .apns).last?.request.connection == 2
                }
            }
        }
    }

    @Test func `access tokens are revoked at the scheduled time`() async throws {
        try await WireTests.withListener(.google) { listening, _ async throws in
            let tokens = listening.simulator.state.accessTokens
            let token = tokens.issue(project: "p", lifetime: 60, at: .now)
            try await Self.withFaultInjection(listening, #"{"revoke_access_tokens":true,"delay_ms":1}"#) {
                _ async throws in
                try await eventually("it is refused", within: .seconds(5)) { tokens.grant(for: token, at: .now) == nil }
            }
        }
    }

    @Test func `a GOAWAY before a request leaves all concurrent requests unprocessed`() async throws {
        try await Self.withWarm { listening, client async throws in
            try listening.simulator.play(#"{"provider":"apns","goaway":{"last_stream":"before"},"skip":20,"count":1}"#)
            let results = await withTaskGroup(of: Result<Int, HTTP2Error>.self) { group in
                for _ in 1...60 { group.addTask { await Self.execute(client) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let answered = results.filter { $0 == .success(200) }.count
            for case .failure(let error) in results { #expect(error.isSafeToResend, "\(error)") }
            #expect(listening.simulator.log.totals(of: .apns).delivered == answered + 1)
        }
    }

    @Test func `a client that pings Google too often gets GOAWAY`() async throws {
        try await WireTests.withListener(.google) { listening, _ async throws in
            var configuration = HTTP2ClientConfiguration()
            configuration.pingAfter = .milliseconds(30)
            let client = try listening.client(configuration)
            // The client pings a peer that owes it a response.
            try listening.simulator.play(#"{"provider":"fcm","silence":true}"#)
            let token = listening.simulator.state.accessTokens.issue(
                project: Fixture.project, lifetime: 3600, at: .now)
            let request = HTTP2Request(
                path: "/v1/projects/\(Fixture.project)/messages:send",
                headers: [HTTP2Header(name: "authorization", value: "Bearer \(token)")],
                body: Array(#"{"message":{"token":"t"}}"#.utf8))
            let error = await #expect(throws: HTTP2Error.self) {
                try await client.execute(request, deadline: .seconds(10))
            }
            #expect(error.map { "\($0)" }?.contains("ENHANCE_YOUR_CALM") == true, "\(String(describing: error))")
            await client.shutdown()
        }
    }

    @Test(arguments: [ProviderPort.apns(.production), .google, .webPush])
    func `an idle connection is closed, an active one is not`(
        port: ProviderPort
    ) async throws {
        try await WireTests.withListener(port) { listening, client async throws in
            let watch = IdleTimeoutService(rateLimits: listening.simulator.state.rateLimits, ports: listening.ports)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await watch.run() }
                _ = try await client.execute(WireTests.push(), deadline: .seconds(10))
                #expect(listening.ports.connections(of: port).count == 1)
                listening.simulator.state.rateLimits.limits = try LimitSettings([
                    "apns_idle_ms": 100, "fcm_idle_ms": 100, "webpush_idle_ms": 100,
                ])
                try await eventually("the connection ended", within: .seconds(10)) {
                    listening.ports.connections(of: port).isEmpty
                }
                _ = try await client.execute(WireTests.push(), deadline: .seconds(10))
                group.cancelAll()
            }
        }
    }
}
