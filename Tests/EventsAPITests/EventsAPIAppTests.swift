import Foundation
import Logging
import ServiceKit
import Testing
import TestSupport

@testable import EventsAPI

@Suite struct EventsAPIAppTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    @Test func `the app is built without broker and database, and is not ready`() async throws {
        let settings = try Settings.load(
            keys: .eventsAPI,
            environment: [
                "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/none",
                "DATABASE_URL": "postgresql://nobody:x@127.0.0.1:1/none",
                "HELIOGRAPH_APPS": try folder.write("apps.yaml", "apps:\n  bare:\n"),
            ])
        let context = ServiceContext(name: "events-api", settings: settings, logger: .silent, readiness: Readiness())
        _ = try await EventsAPIApp.build(context)
        #expect(
            Set(context.readiness.report.conditions.map(\.name)) == [
                "apps", "broker-out", "topology", "database", "schema", "database-durability",
            ])
        #expect(!context.readiness.report.isReady)
    }
}
