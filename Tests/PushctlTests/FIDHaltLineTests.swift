import Foundation
import Testing

@testable import Pushctl
@testable import RegistryStore

@Suite struct FIDHaltLineTests {
    @Test(arguments: [("5.0", "family-portal  5.0  12 people"), ("", "family-portal  no version  12 people")])
    func `a halt is a line with its version and times`(version: String, start: String) {
        let time = Date(timeIntervalSince1970: 1_767_225_600)
        let halt = FIDStore.HaltSummary(
            app: "family-portal", version: version, haltedAt: time, until: time + 3600, suspected: 12)
        #expect(halt.line == "\(start)  since 2026-01-01T00:00:00.000Z  until 2026-01-01T01:00:00.000Z")
    }
}
