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

    @Test func `sums and differences of extreme times saturate`() {
        let (first, last) = (Timestamp(milliseconds: .min), Timestamp(milliseconds: .max))
        let now = Timestamp(milliseconds: 1_767_225_600_000)
        #expect(first - now == .milliseconds(Int64.min) && last - first == .milliseconds(Int64.max))
        #expect(first - last == .milliseconds(Int64.min) && now - first == .milliseconds(Int64.max))
        #expect(last + .seconds(1) == last && first - Duration.seconds(1) == first)
        #expect(first.rounded(downTo: .seconds(3600)) == first)
        #expect(now + .seconds(Int64.max) == last && first - Duration.seconds(Int64.max) == first)
        #expect((first - last).wholeMilliseconds == .min && (.zero - (first - last)).wholeMilliseconds == .max)
    }
}
