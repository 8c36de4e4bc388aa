import Foundation
import Testing
import TestSupport

@testable import HTTPSFetch

@Suite(.timeLimit(.minutes(1))) struct FaultTests {
    private func failure(
        _ answer: ScriptedServer.Answer, _ fetch: HTTPSFetch = HTTPSFetch()
    ) async throws -> FetchError? {
        try await withServer({ _ in answer }) { _, url in
            let request = FetchRequest(
                url: "\(url)/path-s3cret?query=s3cret", headers: [("Authorization", "Bearer s3cret")])
            let error = await #expect(throws: FetchError.self) { try await fetch.send(request) }
            #expect(error.map { !"\($0)".contains("s3cret") } == true)
            #expect(error?.origin == url)
            return error
        }
    }

    @Test func `a response body above the limit is rejected, with and without Content-Length`() async throws {
        let small = HTTPSFetch(maximumResponseSize: 1_000)
        let body = String(repeating: "x", count: 1_001)
        for head in ["Content-Length: 1001", "X-None: 1"] {
            let error = try await failure(.text("HTTP/1.1 200 OK\r\n\(head)\r\n\r\n\(body)"), small)
            #expect(error?.code == .responseTooLarge)
        }
    }

    @Test func `a response body at the limit is accepted`() async throws {
        let body = String(repeating: "x", count: 1_000)
        try await withServer({ _ in .text("HTTP/1.1 200 OK\r\n\r\n\(body)") }) { _, url in
            let response = try await HTTPSFetch(maximumResponseSize: 1_000).send(FetchRequest(url: url))
            #expect(response.body.count == 1_000)
        }
    }

    @Test func `headers above the limit are rejected`() async throws {
        let header = "X-A: \(String(repeating: "x", count: 90))\r\n"
        let answer = "HTTP/1.1 200 OK\r\n" + String(repeating: header, count: 50) + "\r\n"
        let error = try await failure(.text(answer), HTTPSFetch(maximumResponseSize: 1_000))
        #expect(error?.code == .responseTooLarge)
    }

    @Test func `a server that does not respond times out`() async throws {
        let start = ContinuousClock.now
        let error = try await failure(.silence, HTTPSFetch(timeout: .milliseconds(200)))
        #expect(error?.code == .timedOut)
        #expect(error?.isRetriable == true)
        #expect(.now - start < .seconds(30))
    }

    @Test(arguments: [
        "", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "SSH-2.0-x\r\n",
    ])
    func `a truncated or missing response is an error`(answer: String) async throws {
        #expect(try await failure(.text(answer))?.code == .broken)
    }

    @Test func `a closed port is reported as unreachable`() async throws {
        let server = try ScriptedServer { _ in .silence }
        server.stop()
        let error = await #expect(throws: FetchError.self) {
            // The listener closes on its own thread.
            try await eventually("a closed listener") {
                _ = try await HTTPSFetch(timeout: .milliseconds(100)).send(
                    FetchRequest(url: "http://127.0.0.1:\(server.port)/"))
                return false
            }
        }
        #expect(error?.code == .unreachable || error?.code == .timedOut)
    }

    @Test func `cancelling ends a request at once`() async throws {
        try await withServer({ _ in .silence }) { server, url in
            let task = Task { try await HTTPSFetch(timeout: .seconds(50)).send(FetchRequest(url: url)) }
            try await eventually("the request") { server.requests.count == 1 }
            let start = ContinuousClock.now
            task.cancel()
            let error = await #expect(throws: FetchError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            #expect(.now - start < .seconds(30))
        }
    }

    @Test func `an already cancelled task does not wait`() async throws {
        try await withServer({ _ in .silence }) { _, url in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await HTTPSFetch(timeout: .seconds(50)).send(FetchRequest(url: url))
            }
            let error = await #expect(throws: FetchError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
    }

    #if os(Linux)
        @Test func `released fetches leave no threads`() async throws {
            func threads() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { task in
                    let name = FileManager.default.contents(atPath: "/proc/self/task/\(task)/comm") ?? Data()
                    return String(decoding: name, as: UTF8.self) == "https-fetch\n"
                }
            }
            try await withServer({ _ in .text("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }) { _, url in
                for _ in 0..<100 { _ = try await HTTPSFetch().send(FetchRequest(url: url)) }
                // Other tests run threads concurrently.
                try await eventually("ended threads") { try threads() < 50 }
            }
        }
    #endif
}
