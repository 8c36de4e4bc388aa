import ArgumentParser
import Foundation
import PushProtocol
import ServiceKit
import Testing

@testable import RuleDryRun
@testable import RuleLanguage
@testable import Rules

/// The example `deploy/examples/food-delivery`: a product written with the documentation of the rule language.
@Suite struct FoodDeliveryTests {
    static let folder = URL(filePath: Shipped.directory).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy/examples/food-delivery")

    static func run(_ arguments: String...) throws -> Answer {
        let command = try #require(try RuleTool.parseAsRoot(arguments) as? any RuleToolCommand)
        return command.answerOrComplaint { FileManager.default.contents(atPath: $0) }
    }

    @Test func `the rule files have no mistake`() throws {
        let answer = try Self.run("check", Self.folder.appending(path: "rules").path)
        #expect(answer.code == 0, "\(answer.complaints)")
    }

    @Test func `the apps file allows the copies of events`() throws {
        let catalog = try AppCatalog.load(path: Self.folder.appending(path: "apps.yaml").path)
        let apps = ActiveApps(catalog)
        #expect(throws: Never.self) {
            try RuleDirectory.load(
                Self.folder.appending(path: "rules").path,
                isShared: { owner, borrower in apps.sharesEvents(of: owner, with: borrower) })
        }
        #expect(throws: RuleFileError.self) {
            try RuleDirectory.load(Self.folder.appending(path: "rules").path, isShared: { _, _ in false })
        }
    }

    /// Compares each decision, and the text of each push.
    @Test func `the preview decides as the product wants`() throws {
        let answer = try Self.run(
            "preview", Self.folder.appending(path: "rules").path, "--events",
            Self.folder.appending(path: "events.ndjson").path, "--users",
            Self.folder.appending(path: "people.json").path)
        #expect(answer.code == 0 && answer.complaints.isEmpty, "\(answer.complaints)")
        let expected = try String(contentsOf: Self.folder.appending(path: "preview.txt"), encoding: .utf8)
        #expect(answer.lines.joined(separator: "\n") + "\n" == expected)
    }
}
