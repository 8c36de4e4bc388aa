import FoundationEssentials
import HTTP2
import HTTP2Server
import Messaging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import APNsSender

/// Vectors about frames (ProviderFacts.md §E.2), and properties of a sender's connections.
@Suite(.timeLimit(.minutes(2))) struct ConnectionWireTests {
    private let catalogs: AppCatalogs

    init() throws { catalogs = try AppCatalogs() }

    private func targets(_ count: Int) -> [Push.Target] {
        (0..<count).map { .sample(token: String($0 + 0x1000_0000, radix: 16)) }
    }

    @Test func `each app's pushes are handled on its connections' event loop`() async throws {
        let apns = try await ScriptedAPNs.start { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(
            try catalogs.load(
                "demo: { apns: { topic: com.example.app, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
                "same: { apns: { topic: com.example.same, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
                "other: { apns: { topic: com.example.else, key-id: XYZ123DEFG, team-id: DEF123GHIJ, key-file: other.p8 } }"
            ))
        func executor(_ app: String) throws -> EventLoopExecutor {
            try #require(sender.gateways.executors[AppID(rawValue: app)!] as? EventLoopExecutor)
        }
        #expect(try executor("demo") === executor("same"))
        // One client for each key and environment.
        #expect(sender.gateways.clients.count == 4)
        for client in sender.gateways.clients {
            for app in client.apps {
                #expect(try executor(app.rawValue).eventLoop === client.current()?.eventLoop)
            }
        }
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `an interactive push does not wait behind a campaign for a stream`() async throws {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 1)) { _, _ in
            await gate.pass()
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key(), connections: 1)
        async let campaign = sender.send(.sample(lane: .bulk, targets: targets(40)))
        try await eventually("the first of the campaign") { apns.requests.count == 1 }
        async let message = sender.send(.sample(targets: [.sample(token: "ffff")]))
        try await eventually("all others wait") { sender.clients.map(\.statistics.waiting).reduce(0, +) == 40 }
        gate.open()
        #expect(try await message.answers.map(\.disposition) == [.accepted])
        #expect(try await campaign.answers.map(\.disposition) == Array(repeating: .accepted, count: 40))
        #expect(apns.requests.map(\.path).firstIndex(of: "/3/device/ffff") == 1)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `B01: the returned id matches ours in any case`() async throws {
        let apns = try await ScriptedAPNs.start { request, _ in
            let id = request.headers["apns-id"]?.uppercased() ?? ""
            return [.respond(status: 200, headers: [HTTP2Header(name: "apns-id", value: id)])]
        }
        let sender = try await apns.sender(try catalogs.key())
        let push = Push.sample()
        #expect(
            try await sender.send(push).answers
                == [.accepted(id: ProviderMessageID(push.targets[0].pushID))])
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `B23: streams above GOAWAY's last stream are resent at once without counting an attempt`() async throws {
        let apns = try await ScriptedAPNs.start { request, _ in
            guard request.connection == 1 else { return [.respond(status: 200)] }
            switch request.stream {
            case ...5: return [.wait(.milliseconds(100)), .respond(status: 200)]
            // At the fifth stream all are open: 1 and the next two are processed, the others are never answered.
            case 9:
                return [.goAway(HTTP2ServerGoAway(lastStream: .exactly(5), debugText: "")), .wait(.seconds(600))]
            default: return [.wait(.seconds(600))]
            }
        }
        let sender = try await apns.sender(try catalogs.key())
        // The first request proves the token, alone.
        #expect(try await sender.send(.sample(targets: targets(1))).answers.map(\.disposition) == [.accepted])
        let push = Push.sample(targets: targets(5).suffix(4))
        let result = try await sender.send(push)
        #expect(result.disposition == .done)
        #expect(result.answers.map(\.disposition) == Array(repeating: .accepted, count: 4))
        let second = apns.requests.filter { $0.connection == 2 }
        #expect(second.count == 2)
        #expect(Set(apns.requests.compactMap { $0.headers["apns-id"] }).count == 5)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test(arguments: [#"{"reason":"IdleTimeout"}"#, "idle, in plain text", ""])
    func `B24: after GOAWAY on an idle connection, the next push opens a new one`(
        debugText: String
    ) async throws {
        let apns = try await ScriptedAPNs.start { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(try catalogs.key())
        _ = try await sender.send(.sample())
        apns.server.goAwayAll(HTTP2ServerGoAway(lastStream: .received, debugText: debugText))
        try await eventually("the close", within: .seconds(30)) { apns.closed.count == 1 }
        #expect(apns.opened == 1)
        #expect(sender.trouble() == nil)
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(apns.opened == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test
    func `B27: when the stream limit falls to one, requests wait for all in flight and then go one at a time`()
        async throws
    {
        let (gate, next) = (Gate(), Gate())
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 10)) {
            _, before in
            // The first request proves the token; the next ten stay in flight.
            if (1...10).contains(before) { await gate.pass() } else if before == 11 { await next.pass() }
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key(), connections: 1)
        _ = try await sender.send(.sample(targets: targets(1)))
        async let result = sender.send(.sample(targets: targets(51).suffix(50)))
        try await eventually("ten in flight", within: .seconds(30)) { apns.requests.count == 11 }
        apns.server.setMaximumConcurrentStreams(1)
        try await eventually("the client knows", within: .seconds(30)) {
            sender.clients.contains { $0.statistics.streamLimit == 1 }
        }
        #expect(apns.requests.count == 11)
        gate.open()
        try await eventually("one goes alone", within: .seconds(30)) {
            sender.clients.contains { $0.statistics.openStreams == 1 && $0.statistics.waiting == 39 }
        }
        try await eventually("it has arrived", within: .seconds(30)) { apns.requests.count == 12 }
        next.open()
        let finished = try await result
        #expect(finished.disposition == .done)
        #expect(finished.answers.map(\.disposition) == Array(repeating: .accepted, count: 50))
        #expect(apns.requests.count == 51)
        #expect(apns.opened == 1)
        await sender.stop()
        await apns.server.shutdown()
        #expect(apns.closed.first?.peakStreams == 10)
    }

    @Test func `B28: with a provider token, one request goes first regardless of the stream limit`() async throws {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start { _, before in
            if before == 0 { await gate.pass() }
            return [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key())
        async let result = sender.send(.sample(targets: targets(20)))
        try await eventually("the others wait", within: .seconds(30)) {
            sender.clients.contains { $0.statistics.waiting == 19 && $0.statistics.openStreams == 1 }
        }
        try await eventually("the first arrived", within: .seconds(30)) { !apns.requests.isEmpty }
        #expect(apns.requests.count == 1)
        gate.open()
        #expect(try await result.answers.map(\.disposition) == Array(repeating: .accepted, count: 20))
        #expect(apns.opened == 1)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `a two-step GOAWAY loses no push and duplicates none`() async throws {
        let apns = try await ScriptedAPNs.start { request, before in
            guard before == 1 else { return [.respond(status: 200)] }
            return HTTP2ServerStep.gracefulGoAway(debugText: #"{"reason":"Shutdown"}"#, pause: .milliseconds(50))
                + [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key())
        _ = try await sender.send(.sample(targets: targets(1)))
        let result = try await sender.send(.sample(targets: targets(40)))
        #expect(result.answers.map(\.disposition) == Array(repeating: .accepted, count: 40))
        #expect(apns.requests.count == 41)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `teams do not share connections, apps of one team and key do`() async throws {
        let apns = try await ScriptedAPNs.start { _, _ in [.respond(status: 200)] }
        let sender = try await apns.sender(
            try catalogs.load(
                "demo: { apns: { topic: a.one, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
                "same: { apns: { topic: a.two, key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8 } }",
                "other: { apns: { topic: b.one, key-id: ZBC123DEFG, team-id: ZEF123GHIJ, key-file: other.p8 } }"))
        for app in ["demo", "same", "other", "demo"] { _ = try await sender.send(.sample(app: app)) }
        let connections = Dictionary(grouping: apns.requests) { $0.headers["apns-topic"] ?? "" }
            .mapValues { Set($0.map(\.connection)) }
        #expect(connections["a.one"] == connections["a.two"])
        #expect(connections["a.one"]?.isDisjoint(with: connections["b.one"] ?? []) == true)
        #expect(apns.opened == 2)
        for (_, requests) in Dictionary(grouping: apns.requests, by: \.connection) {
            #expect(Set(requests.map { $0.headers["authorization"] }).count == 1)
        }
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `A33: a thousand requests in 49 minutes, to three topics over two connections, use one token`()
        async throws
    {
        let gate = Gate()
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 5)) {
            _, before in
            if before > 0 { await gate.pass() }
            return [.respond(status: 200)]
        }
        let apps = ["demo", "same", "third"]
        let key = "key-id: ABC123DEFG, team-id: DEF123GHIJ, key-file: key.p8"
        let entries = apps.map { "\($0): { apns: { topic: a.\($0), \(key) } }" }
        let sender = try await apns.sender(try catalogs.load(entries.joined(separator: "\n  ")), connections: 2)
        _ = try await sender.send(.sample(targets: targets(1)))
        for round in 0..<9 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for app in apps {
                    group.addTask { _ = try await sender.send(.sample(app: app, targets: targets(37))) }
                }
                if round == 0 {
                    try await eventually("two connections", within: .seconds(30)) { apns.opened == 2 }
                    gate.open()
                }
                try await group.waitForAll()
            }
            sender.time.advance(by: .seconds(49 * 60 / 9))
        }
        #expect(apns.requests.count == 1000 && apns.opened == 2)
        #expect(Set(apns.requests.map { $0.headers["apns-topic"] }) == ["a.demo", "a.same", "a.third"])
        #expect(Set(apns.requests.map { $0.headers["authorization"] }).count == 1)
        await sender.stop()
        await apns.server.shutdown()
    }

    @Test func `given a topic that Apple allows later, then the next probe on a new connection succeeds`() async throws
    {
        let apns = try await ScriptedAPNs.start { request, _ in
            request.connection == 1
                ? [.respond(status: 400, body: Array(#"{"reason":"TopicDisallowed"}"#.utf8))] : [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key())
        #expect(try await sender.send(.sample()).held == .seconds(30))
        sender.time.advance(by: .seconds(30))
        #expect(try await sender.send(.sample()).answers.map(\.disposition) == [.accepted])
        #expect(sender.trouble() == nil)
        await sender.stop()
        await apns.server.shutdown()
    }

    /// An APNs connection is bound to its first token, and waiting requests go first on the next connection.
    @Test
    func `B09: given many requests with an expired token, then all are resent with one new token`()
        async throws
    {
        let gate = Gate()
        let bound = Mutex<[Int: String]>([:])
        let expired = Mutex<String?>(nil)
        let apns = try await ScriptedAPNs.start(settings: HTTP2ServerSettings(maximumConcurrentStreams: 1)) {
            request, before in
            let token = request.headers["authorization"] ?? ""
            if before == 0 { expired.withLock { $0 = token } }
            if before == 1 { await gate.pass() }
            let first = bound.withLock { bound in
                defer { bound[request.connection] = bound[request.connection] ?? token }
                return bound[request.connection] ?? token
            }
            let isRefused = before > 0 && (first == expired.withLock { $0 } || first != token)
            return isRefused
                ? [.respond(status: 403, body: Array(#"{"reason":"ExpiredProviderToken"}"#.utf8))]
                : [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key(), connections: 1)
        _ = try await sender.send(.sample(targets: targets(1)))
        sender.time.advance(by: .seconds(25 * 60))
        let results = try await withThrowingTaskGroup(of: SenderUnderTest.Result.self) { group in
            for count in 2...5 { group.addTask { try await sender.send(.sample(targets: targets(count))) } }
            try await eventually("they wait", within: .seconds(30)) {
                apns.requests.count >= 2
                    && sender.clients.contains { $0.statistics.waiting + $0.statistics.openStreams == 14 }
            }
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.flatMap(\.answers).count { $0.disposition == .accepted } == 14, "\(results.map(\.disposition))")
        #expect(sender.trouble() == nil)
        #expect(Set(apns.requests.map { $0.headers["authorization"] }).count == 2)
        await sender.stop()
        await apns.server.shutdown()
    }

    /// Such a connection's first request waited since before the key changed.
    @Test func `a connection bound to another token is abandoned`() async throws {
        let apns = try await ScriptedAPNs.start { request, _ in
            request.connection == 1
                ? [.respond(status: 429, body: Array(#"{"reason":"TooManyProviderTokenUpdates"}"#.utf8))]
                : [.respond(status: 200)]
        }
        let sender = try await apns.sender(try catalogs.key())
        #expect(try await sender.send(.sample()).outcomes.isEmpty)
        sender.time.advance(by: .seconds(30))
        #expect(try await sender.send(.sample(), attempt: 2).answers.map(\.disposition) == [.accepted])
        #expect(apns.requests.map(\.connection) == [1, 2])
        #expect(Set(apns.requests.map { $0.headers["authorization"] }).count == 1)
        await sender.stop()
        await apns.server.shutdown()
    }
}
