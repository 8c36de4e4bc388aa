import DecisionLog
import Foundation
import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import PushProtocol
import Testing
import TestSupport
import Yams

@testable import RuleLanguage
@testable import Rules

/// `openapi.yaml` and the router list the same routes. Schemathesis checks the responses.
@Suite(.timeLimit(.minutes(2))) struct RulesOpenAPITests {
    static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Services/Rules/API/openapi.yaml")

    @Test func `every route is described, and every described route exists`() async throws {
        let document = try #require(
            try Yams.load(yaml: String(contentsOf: Self.file, encoding: .utf8)) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let described = paths.flatMap { path, members in
            members.keys.filter { $0 != "parameters" }.map { "\($0.uppercased()) \(path)" }
        }
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            let routes = http.api.routes.routes.map { "\($0.method) \($0.path)" }
            #expect(Set(routes) == Set(described))
            #expect(routes.count == described.count)
        }
    }

    @Test func `the file is served unchanged, and other methods get 405 with Allow`() async throws {
        let written = try Data(contentsOf: Self.file)
        try await RulesHTTP.with { (http: RulesHTTP) async throws in
            try await http.client.execute(uri: "/openapi.yaml", method: .get) { response in
                #expect(Data(response.body.readableBytesView) == written)
            }
            for (uri, allowed) in [("/v1/preferences", "GET, PATCH"), ("/v1/presence/phone", "DELETE, PUT")] {
                try await http.client.execute(uri: uri, method: .post) { response in
                    #expect(response.status == .methodNotAllowed && response.headers[.allow] == allowed)
                }
            }
        }
    }

    @Test func `every body has an example, and its schema accepts the example`() throws {
        let parsed = try #require(try Yams.load(yaml: String(contentsOf: Self.file, encoding: .utf8)))
        let document = try #require(JSONValue(parsed: parsed))
        #expect(OpenAPIExamples.problems(in: document) == [])
    }

    @Test func `the documented limits equal those in the code`() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        for size in [PreferencesPatch.maximumSize, ReadingBody.maximumSize, ReceiptsBody.maximumSize] {
            #expect(size == 65_536)
        }
        #expect(text.contains("At most 65536 bytes") && text.contains("At most \(HeartbeatBody.maximumSize) bytes"))
        for limit in [
            "maximum: \(InboxRoutes.largestPage), default: \(InboxRoutes.usualPage)",
            "maximum: \(ExplanationStore.maximumPageSize), default: \(OperatorRoutes.usualPage)",
            "maxItems: \(ExplanationStore.maximumEvents), items", "at most \(CloudEvents.maximumNameLength) bytes",
            "maxItems: \(CountStore.maximumRows)", "at most \(CountWindow.maximumDays) days",
            "maxItems: \(ReadingBody.mostItems)", "maxItems: \(ReceiptsBody.mostReceipts)",
            "maxProperties: \(PreferencesPatch.mostMutes)", "maximum: \(Signal.longestLease.components.seconds)",
            "on \(PresenceStore.mostDevices) other devices",
        ] {
            #expect(text.contains(limit), "\(limit)")
        }
    }
}
