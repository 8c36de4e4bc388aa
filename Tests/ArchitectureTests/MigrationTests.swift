import Foundation
import Testing

/// The schema version that each service asks for at its start.
@Suite struct MigrationTests {
    @Test(arguments: ["Feedback", "Rules", "TokenRegistry"])
    func `a service requires the newest migration of its schema`(service: String) throws {
        let text = try Sources.text(of: "Services/\(service)/\(service)App.swift")
        let required = try #require(text.firstMatch(of: /migration: (\d+)\)/)).1
        let files = try Sources.folders(in: "Services/\(service)/Storage/Migrations").filter { $0.hasSuffix(".sql") }
        let newest = try #require(files.compactMap { Int($0.prefix(4)) }.max())
        #expect(Int(required) == newest)
    }
}
