import PushProtocol
import Testing

@Suite struct DurationTests {
    private static let cases: [(Duration, Int64)] = [
        (.zero, 0), (.milliseconds(1), 1), (.microseconds(1_999), 1), (.seconds(14 * 86_400), 1_209_600_000),
        (.milliseconds(-1500), -1500), (.microseconds(-1_999), -1),
    ]

    @Test(arguments: cases) func `whole milliseconds are rounded towards zero`(
        duration: Duration, milliseconds: Int64
    ) {
        #expect(duration.wholeMilliseconds == milliseconds)
        #expect(Timestamp(milliseconds: 7) + duration == Timestamp(milliseconds: 7 + milliseconds))
    }
}
