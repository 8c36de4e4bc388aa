import HTTP2
import HTTP2Server
import Testing
import TestSupport

/// GOAWAY handling: no request is lost, processed twice, or sent on a closing connection.
@Suite(.timeLimit(.minutes(2)))
struct GoAwayTests {
    @Test func `streams above the last one are resent on a new connection, the others are answered`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(handler: { request in
            log.begin(request)
            if request.connection == 1 { await gate.pass() }
            return [.respond(status: 200, body: Array("\(request.connection)".utf8))]
        }) { harness in
            async let outcomes = harness.sendMany(5)
            try await eventually("five are open") { log.count == 5 }
            harness.server.goAwayAll(HTTP2ServerGoAway(lastStream: .exactly(5), debugText: #"{"reason":"Shutdown"}"#))
            try await eventually("two were sent again") { log.count == 7 }
            gate.open()
            let bodies = try await outcomes.map { String(decoding: try $0.get().body, as: UTF8.self) }
            #expect(bodies.sorted() == ["1", "1", "1", "2", "2"])
            let again = log.requests.suffix(2).map(\.path).sorted()
            #expect(again == log.requests.prefix(5).filter { $0.stream > 5 }.map(\.path).sorted())
            #expect(await harness.statistics().resends == 2)
            #expect(await harness.statistics().resets.isEmpty)
            let notice = try #require(await harness.statistics().lastGoAway)
            #expect(notice.debugText == #"{"reason":"Shutdown"}"#)
            #expect(notice.lastStream == 5)
            try await eventually("the old connection is closed") { harness.server.connections.map(\.id) == [2] }
        }
    }

    @Test func `the first of two GOAWAYs stops new streams, the last one decides resends`() async throws {
        let (log, gate) = (RequestLog(), Gate())
        try await Harness.run(handler: { request in
            log.begin(request)
            if request.connection == 1 { await gate.pass() }
            return [.respond(status: 200, body: Array("\(request.connection)".utf8))]
        }) { harness in
            async let first = harness.send("/first")
            try await eventually("it is open") { log.count == 1 }
            harness.server.goAwayAll(HTTP2ServerGoAway(lastStream: .maximum))
            try await eventually("the first GOAWAY arrived") { harness.client.statistics.goAways == 1 }
            let second = try await harness.send("/second")
            #expect(second.body == Array("2".utf8))
            #expect(await harness.statistics().drainingConnections == 1)
            harness.server.perform([.goAway(HTTP2ServerGoAway(lastStream: .received))], on: 1)
            gate.open()
            let answer = try await first
            #expect(answer.body == Array("1".utf8))
            #expect(await harness.statistics().resends == 0)
            #expect(log.count == 2)
        }
    }

    @Test func `a response with a GOAWAY that includes it leads to a new connection`() async throws {
        try await Harness.run(handler: { request in
            [.respond(status: 503), .goAway(HTTP2ServerGoAway(lastStream: .this, debugText: "plain words"))]
        }) { harness in
            for _ in 1...3 {
                let response = try await harness.send()
                #expect(response.status == 503)
            }
            #expect(await harness.statistics().connectionsOpened == 3)
            #expect(await harness.statistics().lastGoAway?.debugText == "plain words")
        }
    }

    @Test func `requests above every GOAWAY are resent a bounded number of times`() async throws {
        let log = RequestLog()
        try await Harness.run(handler: { request in
            log.begin(request)
            return [.goAway(HTTP2ServerGoAway(lastStream: .beforeThis))]
        }) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .notProcessed(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .goAway)
            #expect(error?.isSafeToResend == true)
            #expect(log.count == 4)
            #expect(await harness.statistics().resends == 3)
        }
    }

    @Test func `a connection lost after its GOAWAY makes the requests up to its last stream ambiguous`() async throws {
        try await Harness.run(handler: { _ in
            [
                .goAway(HTTP2ServerGoAway(lastStream: .this, code: .internalError, debugText: "dying")),
                .wait(.milliseconds(50)), .dropConnection,
            ]
        }) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .ambiguous(let failure) = error else { Issue.record("\(error as Any)"); return }
            #expect(failure.code == .connectionLost)
            #expect(failure.detail.contains("dying"))
            #expect(failure.detail.contains("INTERNAL_ERROR"))
        }
    }

    @Test func `an idle connection closed by the server is replaced only by the next request`() async throws {
        try await Harness.run { harness in
            _ = try await harness.send()
            harness.server.goAwayAll(HTTP2ServerGoAway(lastStream: .received, debugText: #"{"reason":"IdleTimeout"}"#))
            try await eventually("it is closed") { harness.client.statistics.connectionsClosed == 1 }
            try await eventually("the server sees it too") { harness.server.connections.isEmpty }
            #expect(await harness.statistics().connectionsOpened == 1)
            let response = try await harness.send()
            #expect(response.status == 200)
            #expect(await harness.statistics().connectionsOpened == 2)
        }
    }

    @Test func `with many GOAWAYs each request still arrives exactly once`() async throws {
        let log = RequestLog()
        try await Harness.run(
            configuration: .testing.with {
                $0.maximumConnections = 2
                $0.maximumResends = 100
                $0.connectInterval = .milliseconds(1)
            },
            handler: { request in
                // A GOAWAY excludes the hundredth stream of each connection and later ones.
                if request.stream >= 199 { return [.goAway(HTTP2ServerGoAway(lastStream: .exactly(197)))] }
                log.begin(request)
                return [.respond(status: 200)]
            }
        ) { harness in
            let outcomes = await harness.sendMany(1000)
            #expect(outcomes.allSatisfy { $0.status == 200 })
            #expect(Set(log.requests.map(\.path)).count == 1000)
            #expect(log.count == 1000)
        }
    }
}
