import Foundation
import PushProtocol
import Testing

@Suite struct RFC3339Tests {
    @Test func `every millisecond is formatted exactly and parsed again`() {
        for millisecond in 0..<1000 {
            let moment = Timestamp(milliseconds: 1_767_225_600_000 + Int64(millisecond))
            let text = RFC3339.string(from: moment.date)
            let digits = String(1000 + millisecond).dropFirst()
            #expect(text == "2026-01-01T00:00:00.\(digits)Z")
            #expect(RFC3339.date(from: text).map(Timestamp.init) == moment)
        }
    }

    @Test(arguments: [0, 1, 999]) func `whole seconds are rounded down`(millisecond: Int64) {
        let moment = Timestamp(milliseconds: 1_767_225_600_000 + millisecond)
        #expect(RFC3339.seconds(from: moment.date) == "2026-01-01T00:00:00Z")
    }
}
