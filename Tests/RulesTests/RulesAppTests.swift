import Foundation
import Logging
import Messaging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import Rules

@Suite struct RulesAppTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    func context(rules directory: String) throws -> ServiceContext {
        let settings = try Settings.load(
            keys: .rules,
            environment: [
                "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/none",
                "DATABASE_URL": "postgresql://nobody:x@127.0.0.1:1/none",
                "RULES_DIRECTORY": directory, "HELIOGRAPH_APPS": try folder.write("apps.yaml", "apps:\n  bare:\n"),
            ])
        return ServiceContext(
            name: "rules", settings: settings, logger: Logger(label: "tests.rules") { _ in SwiftLogNoOpLogHandler() },
            readiness: Readiness())
    }

    @Test func `the app is built without broker and database, and is not ready`()
        async throws
    {
        let context = try context(rules: Shipped.directory)
        _ = try await RulesApp.build(context)
        #expect(
            Set(context.readiness.report.conditions.map(\.name)).isSuperset(of: ["database", "schema", "topology"]))
        #expect(!context.readiness.report.isReady)
    }

    @Test func `an invalid rule file stops the start, and each error has folder, file, line and key`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(ruleFile(to: "{ users: userz }", how: "lane: fast").utf8).write(
            to: folder.appending(path: "test.yaml"))
        let context = try context(rules: folder.path)
        let error = await #expect(throws: ConfigurationError.self) { try await RulesApp.build(context) }
        #expect(
            error?.problems == [
                "\(folder.path)/test.yaml:10: rules.only.to.users: no example of the event has “userz”; did you mean “users”?",
                "\(folder.path)/test.yaml:14: rules.only.how.lane: “fast” is not one of interactive, bulk",
            ])
    }

    @Test(arguments: [
        ("chat-message-created", "family-portal", ["457", "458"]),
        ("radar-question-asked", "hide-and-seek", ["hider-1"]),
    ]) func `the demo's events reach the intended users`(
        file: String, app: String, users: [String]
    ) throws {
        let path = "\(Shipped.directory)/../../../deploy/local/demo/\(file).json"
        let body = try #require(FileManager.default.contents(atPath: path))
        let event = try CloudEvents.decode(
            routingKey: "\(app).\(file)", contentType: CloudEvents.structuredContentType, headers: [:],
            body: Array(body))
        #expect(try Shipped.ruleSet(app).evaluate(event).map(\.users) == [users])
    }
}
