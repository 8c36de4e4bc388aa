import Foundation
import NIOCore
import Testing
import TestSupport

@testable import Rules

/// The connection limits of a server, on real sockets.
@Suite(.timeLimit(.minutes(2))) struct ConnectionLimitTests {
    private static let request = "GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private static func withServer(
        connections: Int, requestTimeout: TimeAmount, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await http.serve(connections: connections, requestTimeout: requestTimeout) { port, _ in
                try await body(port)
            }
        }
    }

    @Test func `a connection above the limit gets 503 until another closes`() async throws {
        try await Self.withServer(connections: 2, requestTimeout: .seconds(60)) { port in
            // The probe for the open port may still be counted.
            var served: [StreamingClient] = []
            try await eventually("two are served") {
                for client in served { client.close() }
                served = try (0..<2).map { _ in try StreamingClient(port: port, request: Self.request) }
                try await eventually("both answers") { served.allSatisfy { $0.text.contains("\r\n\r\n") } }
                return served.allSatisfy { $0.text.hasPrefix("HTTP/1.1 200 ") }
            }
            let refused = try StreamingClient(port: port, request: Self.request)
            try await eventually("the refusal") { refused.isOver }
            #expect(refused.text.hasPrefix("HTTP/1.1 503 "))
            #expect(refused.text.lowercased().contains("\r\nretry-after: 2\r\n"))
            served[0].close()
            try await eventually("there is room") {
                let next = try StreamingClient(port: port, request: Self.request)
                defer { next.close() }
                try await eventually("an answer") { next.text.contains("\r\n\r\n") }
                return next.text.hasPrefix("HTTP/1.1 200 ")
            }
            served[1].close()
        }
    }

    @Test(arguments: [
        "", "GET /openapi.yaml HTTP/1.1\r\nHost: loc",
        "PATCH /v1/preferences HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
    ]) func `a connection with an incomplete request is closed after the timeout`(beginning: String) async throws {
        try await Self.withServer(connections: 100, requestTimeout: .seconds(1)) { port in
            let begun = ContinuousClock.now
            let slow = try StreamingClient(port: port, request: beginning)
            try await eventually("the end", within: .seconds(20)) { slow.isOver }
            #expect(ContinuousClock.now - begun >= .milliseconds(900))
            let other = try StreamingClient(port: port, request: Self.request)
            try await eventually("an answer") { other.text.hasPrefix("HTTP/1.1 200 ") }
            other.close()
        }
    }
}
