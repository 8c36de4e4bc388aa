import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import WebhookSender

/// The examples of deploy/operations/webhooks.md accept requests of the service, and no others.
@Suite(.timeLimit(.minutes(1))) struct VerificationTests {
    private static let first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let second = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
    private static let body = Array(#"{"a":1}"#.utf8)

    private static func headers(at time: Timestamp = .now) throws -> [String: String] {
        let secrets = try #require(WebhookSecret.secrets(in: "\(first)\n\(second)"))
        let headers = SignedRequest.headers(id: UUID(), body: body, secrets: secrets, at: time)
        return Dictionary(uniqueKeysWithValues: headers.map { ($0.name.lowercased(), $0.value) })
    }

    private static func block(_ language: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "deploy/operations/webhooks.md"), encoding: .utf8)
        let parts = page.components(separatedBy: "```\(language)\n")
        return try #require(parts.dropFirst().first?.components(separatedBy: "```").first)
    }

    /// Changes of a request, and whether it is still authentic.
    private static let cases: [(change: @Sendable (inout [String: String], inout [UInt8]) -> Void, isAuthentic: Bool)] =
        [
            ({ _, _ in }, true), ({ _, body in body.append(0x20) }, false),
            ({ headers, _ in headers["webhook-id"] = "other" }, false),
            ({ headers, _ in headers["webhook-timestamp"] = "1" }, false),
            ({ headers, _ in headers["webhook-signature"] = "v1,AAAA" }, false),
        ]

    @Test func `the Swift example is the tested one, and accepts only signed requests`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "VerificationExample.swift")
        #expect(try Self.block("swift") == String(contentsOf: file, encoding: .utf8))
        for secret in [Self.first, Self.second] {
            for (index, test) in Self.cases.enumerated() {
                var (headers, body) = (try Self.headers(), Self.body)
                test.change(&headers, &body)
                #expect(isAuthentic(headers: headers, body: Data(body), secret: secret) == test.isAuthentic, "\(index)")
            }
        }
        let old = try Self.headers(at: .now - .seconds(3600))
        #expect(!isAuthentic(headers: old, body: Data(Self.body), secret: Self.first))
    }

    @Test func `the Python example accepts only signed requests`() async throws {
        var program = try Self.block("python") + "\n"
        for (index, test) in Self.cases.enumerated() {
            var (headers, body) = (try Self.headers(), Self.body)
            test.change(&headers, &body)
            let literal = String(decoding: try WireCoding.encode(headers), as: UTF8.self)
            program += "assert verify(\(literal), bytes(\(body)), '\(Self.second)') is "
            program += "\(test.isAuthentic ? "True" : "False"), \(index)\n"
        }
        let python = try await Command("python3", ["-c", program]).run()
        #expect(python.status == 0, "\(python.text)")
    }
}
