import HTTP2
import HTTP2Server
import Testing
import TestSupport

/// Requests and responses on a healthy connection.
@Suite(.timeLimit(.minutes(2)))
struct RequestTests {
    @Test func `requests and responses arrive unchanged`() async throws {
        let log = RequestLog()
        let reply: [HTTP2ServerStep] = [
            .respond(
                status: 201, headers: [HTTP2Header(name: "x-a", value: "1"), HTTP2Header(name: "x-a", value: "2")],
                body: [7, 8])
        ]
        try await Harness.run(handler: {
            log.begin($0); return reply
        }) { harness in
            let response = try await harness.send(
                "/3/device/abc?x=1",
                headers: [
                    HTTP2Header(name: "authorization", value: "bearer secret", neverIndexed: true),
                    HTTP2Header(name: "APNs-Topic", value: "com.example.app"),
                    HTTP2Header(name: "x-empty", value: ""),
                ], body: [1, 2, 3])
            #expect(response.status == 201)
            #expect(response.headers.values(of: "x-a") == ["1", "2"])
            #expect(response.headers["x-b"] == nil)
            #expect(response.body == [7, 8])
            #expect(response.elapsed.map { $0 > .zero && $0 < .seconds(60) } == true)

            let request = try #require(log.requests.first)
            #expect(request.method == "POST")
            #expect(request.scheme == "https")
            #expect(request.authority == "localhost:\(harness.server.port)")
            #expect(request.path == "/3/device/abc?x=1")
            #expect(request.pathNeverIndexed)
            #expect(request.headers.map(\.name) == ["authorization", "apns-topic", "x-empty"])
            #expect(request.headers.map(\.neverIndexed) == [true, false, false])
            #expect(request.headers["x-empty"] == "")
            #expect(request.body == [1, 2, 3])
            #expect(!request.hasClientCertificate)
        }
    }

    @Test(arguments: [0, 1, 16_384, 16_385, 65_535, 65_536, 1 << 20])
    func `bodies of any size arrive complete`(size: Int) async throws {
        let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let configuration = HTTP2ClientConfiguration.testing.with { $0.maximumResponseBody = 1 << 20 }
        try await Harness.run(
            configuration: configuration, handler: { [.respond(status: 200, body: $0.body)] }
        ) { harness in
            let response = try await harness.send(body: body)
            #expect(response.body == body)
        }
    }

    @Test func `thousands of requests share one connection and none exceeds the stream limit`() async throws {
        let log = RequestLog()
        try await Harness.run(
            settings: HTTP2ServerSettings(maximumConcurrentStreams: 50),
            handler: { request in
                log.begin(request)
                defer { log.end() }
                await Task.yield()
                return [.respond(status: 200, body: Array(request.path.utf8))]
            }
        ) { harness in
            let outcomes = await harness.sendMany(3000)
            for (index, outcome) in outcomes.enumerated() {
                let response = try outcome.get()
                #expect(response.body == Array("/\(index)".utf8))
            }
            #expect(log.count == 3000)
            #expect(harness.server.connections.map(\.peakStreams).max() ?? 0 <= 50)
            #expect(await harness.statistics().connectionsOpened == 1)
            #expect(await harness.statistics().responses == 3000)
        }
    }

    @Test func `a response whose body arrives after its headers is complete`() async throws {
        let steps: [HTTP2ServerStep] = [
            .headers(status: 400), .wait(.milliseconds(100)), .data(Array(#"{"reason":"#.utf8), last: false),
            .wait(.milliseconds(20)), .data(Array(#""BadTopic"}"#.utf8), last: true),
        ]
        try await Harness.run(handler: { _ in steps }) { harness in
            let response = try await harness.send()
            #expect(response.status == 400)
            #expect(String(decoding: response.body, as: UTF8.self) == #"{"reason":"BadTopic"}"#)
        }
    }

    @Test func `a response body above the maximum is dropped, the status kept and the connection reused`()
        async throws
    {
        let configuration = HTTP2ClientConfiguration.testing.with { $0.maximumResponseBody = 1000 }
        try await Harness.run(
            configuration: configuration,
            handler: { request in
                let status = Int(request.path.dropFirst()) ?? 200
                let isShort = request.path == "/short"
                return [.respond(status: status, body: Array(repeating: 0, count: isShort ? 1000 : 1001))]
            }
        ) { harness in
            for status in [200, 410, 503] {
                let response = try await harness.send("/\(status)")
                #expect(response.status == status && response.body.isEmpty)
            }
            let response = try await harness.send("/short")
            #expect(response.body.count == 1000)
            #expect(await harness.statistics().connectionsOpened == 1)
        }
    }

    @Test(
        arguments: [
            [.headers(status: 200), .reset(.internalError)],
            [.headers(status: 204), .wait(.milliseconds(50)), .dropConnection],
            [.headers(status: 200)],
        ] as [[HTTP2ServerStep]])
    func `a request with a 2xx status succeeds even if the rest of the response is lost`(
        steps: [HTTP2ServerStep]
    ) async throws {
        try await Harness.run(handler: { $0.path == "/first" ? [.respond(status: 200)] : steps }) { harness in
            // Opens the connection first, so that the deadline covers only the response.
            _ = try await harness.send("/first")
            let response = try await harness.send(deadline: .seconds(5))
            #expect((200..<300).contains(response.status))
        }
    }

    @Test func `a request with a 4xx status is not answered before its response is complete`() async throws {
        try await Harness.run(handler: { _ in [.headers(status: 400), .reset(.internalError)] }) { harness in
            let error = await #expect(throws: HTTP2Error.self) { try await harness.send() }
            guard case .ambiguous = error else { Issue.record("\(error as Any)"); return }
        }
    }

    @Test(arguments: [
        HTTP2Header(name: "a", value: "x\r\ny: z"), HTTP2Header(name: ":path", value: "/other"),
        HTTP2Header(name: "", value: "x"), HTTP2Header(name: "a b", value: "x"),
    ])
    func `a block of fields refuses a malformed one`(field: HTTP2Header) {
        let error = #expect(throws: HTTP2Error.self) { try HTTP2FieldBlock([field]) }
        guard case .invalidRequest = error else { Issue.record("\(error as Any)"); return }
    }

    @Test(arguments: [
        HTTP2Request(path: "/a\r\nb"),
        HTTP2Request(path: "/", headers: [HTTP2Header(name: "a", value: "x\r\ny: z")]),
    ])
    func `a malformed request is rejected before it is sent`(request: HTTP2Request) async throws {
        let log = RequestLog()
        try await Harness.run(handler: {
            log.begin($0); return [.respond(status: 200)]
        }) { harness in
            let error = await #expect(throws: HTTP2Error.self) {
                try await harness.client.execute(request, deadline: .seconds(5))
            }
            guard case .invalidRequest = error else { Issue.record("\(error as Any)"); return }
            #expect(log.count == 0)
        }
    }

    @Test func `a request body longer than the server allows is reset`() async throws {
        try await Harness.run(settings: HTTP2ServerSettings(maximumBodySize: 100)) { harness in
            let error = await #expect(throws: HTTP2Error.self) {
                try await harness.send(body: Array(repeating: 1, count: 101))
            }
            #expect(error?.isSafeToResend == false)
            let response = try await harness.send(body: Array(repeating: 1, count: 100))
            #expect(response.status == 200)
        }
    }
}
