import Foundation
import Primitives
import PushProtocol
import Testing

@testable import Pushctl
@testable import RegistryStore

@Suite struct FIDHaltLineTests {
    @Test(arguments: [("5.0", "family-portal  5.0         12  "), ("", "family-portal  no version     12  ")])
    func `a halt is a row with its version and times`(version: String, start: String) {
        let time = Date(timeIntervalSince1970: 1_767_225_600)
        let halt = FIDStore.HaltSummary(
            app: "family-portal", version: version, haltedAt: time, until: time + 3600, suspected: 12)
        #expect(
            FIDStore.HaltSummary.table([halt]).lines()[1]
                == "\(start)2026-01-01T00:00:00.000Z  2026-01-01T01:00:00.000Z")
        #expect(halt.json["users"] == 12 && halt.json["until"] == "2026-01-01T01:00:00.000Z")
    }
}
