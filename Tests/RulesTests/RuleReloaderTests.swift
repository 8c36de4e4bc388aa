import Foundation
import Logging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// Rule file changes in a running service.
@Suite struct RuleReloaderTests {
    let folder = FileManager.default.temporaryDirectory.appending(path: "rules-\(UUID().uuidString)")
    let app = AppID(rawValue: "test")!

    func write(_ text: String, _ name: String = "test.yaml") throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: folder.appending(path: name))
    }

    func said(_ currentRules: CurrentRules) throws -> String? {
        try currentRules.ruleSets.ruleSets[app]?.evaluate(
            event("thing.happened", app: "test", ["name": "Pat", "users": [1]])
        )
        .first?.content.body
    }

    @Test func `a valid change is loaded, and an invalid one keeps the current rules until it is fixed`() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try write(ruleFile(say: "body: One"))
        let currentRules = CurrentRules(try RuleDirectory.load(folder.path))
        let reloader = RuleReloader(
            directory: folder.path, currentRules: currentRules, apps: [],
            logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        #expect(try said(currentRules) == "One")
        try write(ruleFile(say: "body: Two"))
        #expect(try said(currentRules) == "One")
        reloader.look()
        #expect(try said(currentRules) == "Two")
        try write(ruleFile(say: #"body: "{{nmae}}""#))
        reloader.look()
        #expect(try said(currentRules) == "Two")
        try write(ruleFile(say: "body: Three"))
        reloader.look()
        #expect(try said(currentRules) == "Three")
        try FileManager.default.removeItem(at: folder)
        reloader.look()
        #expect(try said(currentRules) == "Three")
        try write(ruleFile(say: "body: Four"))
        try write(ruleFile().replacing("app: test", with: "app: other"), "other.yaml")
        reloader.look()
        #expect(try said(currentRules) == "Four")
        #expect(currentRules.ruleSets.ruleSets.count == 2)
    }

    @Test func `a missing rule file of a configured app is refused until it is back`() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let other = ruleFile().replacing("app: test", with: "app: other")
        try write(ruleFile(say: "body: One"))
        try write(other, "other.yaml")
        let currentRules = CurrentRules(try RuleDirectory.load(folder.path))
        let readiness = Readiness()
        let condition = readiness.condition("rules", .waiting("not yet"))
        let log = CapturingLogger()
        let reloader = RuleReloader(
            directory: folder.path, currentRules: currentRules, apps: [app], condition: condition, logger: log.logger)
        reloader.look()
        try FileManager.default.removeItem(at: folder.appending(path: "test.yaml"))
        try write(other.replacing("Hello", with: "Two"), "other.yaml")
        reloader.look()
        #expect(try said(currentRules) == "One")
        guard case .degraded = condition.state else {
            Issue.record("readiness has no message about the refused file: \(condition.state)")
            return
        }
        #expect(readiness.report.isReady)
        let errors = log.lines.filter { $0.level == .error }
        #expect(errors.count == 1)
        #expect("\(errors)".contains("test.yaml:1") && "\(errors)".contains("HELIOGRAPH_APPS"))
        try write(ruleFile(say: "body: Three"))
        reloader.look()
        #expect(try said(currentRules) == "Three")
        #expect(condition.state == .holds)
        // The rule file of an unconfigured app may be removed.
        try FileManager.default.removeItem(at: folder.appending(path: "other.yaml"))
        reloader.look()
        #expect(currentRules.ruleSets.ruleSets.count == 1)
    }
}
