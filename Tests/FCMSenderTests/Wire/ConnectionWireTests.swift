import HTTP2
import HTTP2Server
import Logging
import NIOCore
import NIOPosix
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import FCMSender

/// FCM's rules for connections (ProviderFacts.md §B.4).
@Suite(.timeLimit(.minutes(2))) struct ConnectionWireTests {
    @Test func `a connection has at most 100 streams, regardless of SETTINGS, and no PINGs`() async throws {
        let count = 350
        // The client opens a second connection only after a response on the first.
        let silent = try await FakeProvider.start { $0.path == "/first" ? [.respond(status: 200)] : [] }
        let settings = try FCMSettings(
            try Settings.load(
                keys: FCMSettings.keys,
                environment: [
                    "FCM_URL": silent.url, "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile,
                    "FCM_CONNECTIONS": "8",
                ]))
        #expect(settings.client.pingAfter == nil)
        let client = try HTTP2Client(
            endpoint: settings.endpoint, configuration: settings.client,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        _ = try await client.execute(HTTP2Request(path: "/first", headers: [], body: []), deadline: .seconds(30))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<count {
                tasks.addTask {
                    let request = HTTP2Request(path: "/", headers: [], body: [])
                    // Ends by the cancellation below, without a response.
                    _ = try? await client.execute(request, deadline: .seconds(100))
                }
            }
            try await eventually("\(count) requests are in flight", within: .seconds(60)) {
                silent.requests.count == count + 1
            }
            let load = Dictionary(grouping: silent.requests.dropFirst(), by: \.connection).mapValues(\.count)
            #expect(load.values.allSatisfy { $0 <= 100 }, "\(load)")
            #expect(load.count >= 4, "\(load)")
            tasks.cancelAll()
        }
        await client.shutdown()
        await silent.stop()
    }

    @Test func `each app's pushes are handled on its account's event loop`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            #expect(!sender.gateways.accounts.isEmpty)
            for (account, apps) in sender.gateways.accounts {
                for app in apps {
                    let executor = try #require(sender.gateways.executors[app] as? EventLoopExecutor)
                    #expect(executor.eventLoop === account.client.eventLoop)
                }
            }
            await sender.stop()
        }
    }

    @Test func `G17: after GOAWAY on an idle connection, the next push opens a new one`() async throws {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script([
                "provider": "fcm", "count": 1, "status": 200,
                "goaway": ["last_stream": "included", "text": "session_timed_out"],
            ])
            for _ in 1...2 {
                let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
                #expect(result.answers.map(\.disposition) == [.accepted])
            }
            #expect(sender.trouble == nil)
            let connections = Set(try await google.sends().compactMap { $0["connection"]?.int })
            #expect(connections.count == 2)
            await sender.stop()
        }
    }

    @Test func `requests unprocessed by GOAWAY or REFUSED_STREAM are resent at once without counting an attempt`()
        async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            for outcome in [["goaway": ["last_stream": "before"]], ["reset": 7]] as [JSONValue] {
                try await google.script(outcome.merging(["provider": "fcm", "count": 1]))
                let result = try await sender.send(.sample(provider: .fcm, targets: [.sample(token: "t")]))
                #expect(result.answers.map(\.disposition) == [.accepted])
            }
            #expect(try await google.sends().count == 4)
            await sender.stop()
        }
    }

    @Test func `given a connection lost after the request, then it is resent with the same notification id`()
        async throws
    {
        try await SimulatedGoogle.run { google in
            let sender = try await SenderUnderTest(google)
            try await google.script(["provider": "fcm", "drop": true, "count": 1])
            let result = try await sender.send(.sample(provider: .fcm, targets: [.ft1]))
            #expect(result.answers.map(\.disposition) == [.accepted])
            let bodies = try await google.sends().compactMap { $0["body"] }
            #expect(bodies.count == 2 && Set(bodies).count == 1)
            await sender.stop()
        }
    }
}
