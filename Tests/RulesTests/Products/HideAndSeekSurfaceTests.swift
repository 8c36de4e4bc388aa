import Foundation
import Testing

@testable import RuleDryRun
@testable import Rules

/// The example `deploy/examples/hide-and-seek`: a game with one live surface.
@Suite struct HideAndSeekSurfaceTests {
    static let folder = FoodDeliveryTests.folder.deletingLastPathComponent().appending(path: "hide-and-seek")

    @Test func `the rule file has no mistake`() throws {
        let answer = try FoodDeliveryTests.run("check", Self.folder.appending(path: "rules").path)
        #expect(answer.code == 0, "\(answer.complaints)")
    }

    @Test func `the preview shows phase, time left and open questions`() throws {
        let answer = try FoodDeliveryTests.run(
            "preview", Self.folder.appending(path: "rules").path, "--events",
            Self.folder.appending(path: "events.ndjson").path)
        #expect(answer.code == 0 && answer.complaints.isEmpty, "\(answer.complaints)")
        let expected = try String(contentsOf: Self.folder.appending(path: "preview.txt"), encoding: .utf8)
        #expect(answer.lines.joined(separator: "\n") + "\n" == expected)
    }
}
