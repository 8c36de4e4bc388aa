import HTTPTypes
import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct ScriptRoutesTests {
    @Test func `the fault catalogue can be posted as listed, and the summary counts each fault`() async throws {
        let simulator = Fixture.simulator()
        try await ControlRoutesTests.withControl(simulator) { client async throws in
            let faults = try await ControlRoutesTests.ask(client, .get, "/faults?provider=apns&share=0.01").json
            let text = String(decoding: Fixture.json(try #require(faults)), as: UTF8.self)
            let posted = try await ControlRoutesTests.ask(client, .post, "/outcomes?seed=3", text)
            #expect(posted.status == .ok && posted.json?["outcomes"]?.int == Int64(faults?.array?.count ?? 0))
            for index in 0..<500 {
                _ = simulator.push {
                    $0.path = "/3/device/\(String(0x1000 + index, radix: 16))"
                    $0.connection = index
                }
            }
            let summary = try await ControlRoutesTests.ask(client, .get, "/summary?tokens=true").json?["apns"]
            #expect(summary?["count"] == 500)
            let faulted = summary?["faults"]?.object?.values.compactMap(\.int).reduce(0, +) ?? 0
            #expect((100..<500).contains(faulted) && (summary?["faults"]?.object?.count ?? 0) > 40)
            let tokens = summary?["tokens"]?.object ?? [:]
            #expect(tokens.count == 500)
            #expect(tokens.values.compactMap { $0["delivered"]?.int }.reduce(0, +) == summary?["delivered"]?.int)
            #expect(try await ControlRoutesTests.ask(client, .get, "/faults?share=2").status == .badRequest)
            #expect(try await ControlRoutesTests.ask(client, .post, "/outcomes?seed=x", "[]").status == .badRequest)
        }
    }

    @Test func `the log is filtered`() async throws {
        let simulator = Fixture.simulator()
        _ = simulator.push { $0.connection = 4 }
        _ = simulator.push(.development) { $0["apns-topic"] = nil }
        try simulator.play(#"{"provider":"apns","drop":true}"#)
        _ = simulator.push()
        try await ControlRoutesTests.withControl(simulator) { client async throws in
            func sequences(_ query: String) async throws -> [Int64?] {
                let answer = try await ControlRoutesTests.ask(client, .get, "/apns/requests?\(query)").json
                return answer?["requests"]?.array?.map { $0["sequence"]?.int } ?? []
            }
            #expect(try await sequences("status=200") == [1])
            #expect(try await sequences("connection=4") == [1])
            #expect(try await sequences("id=\(Fixture.id.uppercased())") == [1, 2, 3])
            #expect(try await sequences("reason=MissingTopic") == [2])
            #expect(try await sequences("environment=sandbox") == [2])
            #expect(try await sequences("fault=drop&status=0") == [3])
            #expect(try await sequences("app=com.example.app") == [1, 3])
            let mixed = try await ControlRoutesTests.ask(client, .get, "/apns/requests?count=true&status=200")
            #expect(mixed.status == .badRequest)
        }
    }

    @Test(arguments: [
        ("/disturbances", #"{"every_ms":5}"#, "goaway is missing"),
        ("/disturbances", #"{"drop":true,"count":3}"#, "count goes with every_ms"),
        ("/disturbances", #"{"drop":true,"port":"wns"}"#, "port is none of apns, apns-sandbox, fcm"),
        ("/disturbances", #"[{"goaway":{"last_stream":"before"}}]"#, "[0].goaway before needs a request"),
        ("/handshakes", #"{"port":"apns"}"#, "fault is missing"),
        ("/handshakes", #"{"fault":"slow"}"#, "fault is none of refuse"),
    ]) func `an invalid script is rejected with a reason`(path: String, body: String, problem: String)
        async throws
    {
        try await ControlRoutesTests.withControl { client async throws in
            let answer = try await ControlRoutesTests.ask(client, .post, path, body)
            #expect(answer.status == .badRequest)
            #expect(answer.json?["error"]?.string?.hasPrefix(problem) == true, "\(answer)")
        }
    }

    @Test func `a log with capacity 0 still counts`() {
        let log = RequestLog(capacity: 0)
        for _ in 1...3 { RequestLogTests.append(log) }
        #expect(log.requests(of: .apns).isEmpty && log.totals(of: .apns).requests == 3 && log.lastSequence == 3)
    }
}
