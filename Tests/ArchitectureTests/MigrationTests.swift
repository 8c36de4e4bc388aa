import Foundation
import Testing

/// The schema version that each service asks for at its start.
@Suite struct MigrationTests {
    @Test(arguments: ["Feedback", "Rules", "TokenRegistry"])
    func `a service requires the newest migration of its schema`(service: String) throws {
        let app = Sources.files(below: "Services/\(service)").first { $0.hasSuffix("/\(service)App.swift") }
        let text = try Sources.text(of: try #require(app))
        let required = try #require(text.firstMatch(of: /migration: (\d+)\)/)).1
        let files = Sources.files(below: "Services/\(service)", extension: "sql")
            .filter { $0.contains("/Storage/Migrations/") }
        let numbers = files.compactMap { Int($0.split(separator: "/").last?.prefix(4) ?? "") }
        #expect(Int(required) == numbers.max())
    }

    @Test func `events-api requires the newest migration with rights for it`() throws {
        let text = try Sources.text(of: "Services/EventsAPI/EventsAPIApp.swift")
        let required = try #require(text.firstMatch(of: /schema: "rules", migration: (\d+)\)/)).1
        let files = Sources.files(below: "Services/Rules/Storage/Migrations", extension: "sql")
        let granting = try files.filter { try Sources.text(of: $0).contains("heliograph_events_api") }
        #expect(Int(required) == granting.compactMap { Int($0.split(separator: "/").last?.prefix(4) ?? "") }.max())
    }
}
