import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import ServiceKit
import Testing
import TestSupport
import Yams

@testable import EventsAPI

/// `openapi.yaml` and the routes describe the same. Every documented error occurs. Schemathesis checks the responses.
@Suite(.enabled(if: TestDatabase.isAvailable, "needs a database"), .timeLimit(.minutes(3))) struct EventsOpenAPITests {
    static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Services/EventsAPI/API/openapi.yaml")

    /// The documented statuses of each operation.
    static func operations() throws -> [String: Set<Int>] {
        let document = try #require(try Yams.load(yaml: String(contentsOf: file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var operations: [String: Set<Int>] = [:]
        for (path, members) in paths {
            for (method, operation) in members where method != "parameters" {
                let responses = try #require((operation as? [String: Any])?["responses"] as? [String: Any])
                operations["\(method.uppercased()) \(path)"] = Set(responses.keys.compactMap(Int.init))
            }
        }
        return operations
    }

    @Test func `every route is described, and every described route exists`() async throws {
        try await EventsHTTP.with { http async throws in
            let routes = http.api.routes.routes.map { "\($0.method) \($0.path)" }
            #expect(Set(routes) == Set(try Self.operations().keys))
        }
    }

    @Test func `every request and every answer has an example`() throws {
        let document = try #require(
            try Yams.load(yaml: String(contentsOf: Self.file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var contents: [(String, [String: Any])] = []
        for (path, members) in paths {
            for (method, operation) in members {
                let operation = try #require(operation as? [String: Any])
                if let body = operation["requestBody"] as? [String: Any] {
                    contents.append(("\(method) \(path)", try #require(body["content"] as? [String: Any])))
                }
                for (status, response) in try #require(operation["responses"] as? [String: Any]) {
                    let response = try #require(response as? [String: Any])
                    contents.append(
                        ("\(method) \(path) \(status)", try #require(response["content"] as? [String: Any])))
                }
            }
        }
        #expect(contents.count >= 25)
        for (place, types) in contents {
            for (type, content) in types {
                let members = try #require(content as? [String: Any])
                #expect(members["example"] != nil || members["examples"] != nil, "\(place) \(type)")
            }
        }
    }

    @Test func `the file is served unchanged, and other methods get 405 with Allow`() async throws {
        let written = try Data(contentsOf: Self.file)
        try await EventsHTTP.with { http async throws in
            try await http.client.execute(uri: "/openapi.yaml", method: .get) { response in
                #expect(Data(response.body.readableBytesView) == written)
            }
            try await http.client.execute(uri: "/v1/events", method: .get) { response in
                #expect(response.status == .methodNotAllowed && response.headers[.allow] == "POST")
            }
        }
    }

    @Test func `the documented limits equal those in the code`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        for limit in [
            "At most \(WireCoding.maximumBodySize) bytes", "at most \(EventReader.maximumBatch) events",
            "maxItems: \(EventReader.maximumBatch)", "up to \(WaitTime.maximum.components.seconds) s",
            "at most \(WaitTime.maximumEvents) events", "maxLength: \(CloudEvents.maximumNameLength)",
            "maxLength: \(CloudEvents.maximumAttributeLength)", "nest \(CloudEvents.maximumDataDepth) levels",
            "1 to \(IdempotencyKey.maximumLength) visible",
            "At most \(MatrixRoutes.maximumBody) bytes", "maxItems: \(MatrixNotify.maximumDevices)",
        ] {
            #expect(text.contains(limit), "\(limit)")
        }
        let batch = ConfigurationKey.eventsBatchBytes.defaultValue ?? ""
        #expect(text.contains("EVENTS_API_BATCH_BYTES\n          (\(batch)) bytes"))
    }

    /// A well-formed key, which the service looks up.
    static var anyKey: String {
        var random = SplitMix(seed: 9)
        return APIKey(using: &random).secret
    }
}
