import PushProtocol
import Testing

/// Reading and writing of `traceparent`, by W3C Trace Context Level 1 §3.2 and §4.3.
struct TraceParentTests {
    private static let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func `a valid value is read, and written again`() throws {
        let parent = try #require(TraceParent(Self.text))
        #expect(parent.trace.text == "0af7651916cd43dd8448eb211c80319c")
        #expect(parent.span.text == "b7ad6b7169203331")
        #expect(parent.isSampled)
        #expect(parent.text == Self.text)
    }

    @Test func `only the flag of sampling is read, and others are written as zero`() throws {
        let unsampled = try #require(TraceParent(Self.text.dropLast(2) + "02"))
        #expect(!unsampled.isSampled && unsampled.text.hasSuffix("-00"))
        let sampled = try #require(TraceParent(Self.text.dropLast(2) + "ff"))
        #expect(sampled.isSampled && sampled.text.hasSuffix("-01"))
    }

    @Test func `a higher version is read as version 00, also with further text`() {
        let later = "cc" + Self.text.dropFirst(2)
        #expect(TraceParent(later) == TraceParent(Self.text))
        #expect(TraceParent(later + "-what-the-future-will-be-like") == TraceParent(Self.text))
        #expect(TraceParent(later + "-") == TraceParent(Self.text))
        #expect(TraceParent(later + ".what") == nil)
    }

    @Test(
        arguments: [
            "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0X",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01",
        ])
    func `an invalid value is ignored`(text: String) {
        #expect(TraceParent(text) == nil)
    }

    @Test func `an id with all bits zero is no id`() {
        #expect(TraceID(high: 0, low: 0) == nil)
        #expect(SpanID(0) == nil)
        var generator = Numbers([0, 0, 0, 7, 0, 9])
        #expect(TraceID.random { generator.next() } == TraceID(high: 0, low: 7))
        #expect(SpanID.random { generator.next() } == SpanID(9))
    }
}

/// Returns given numbers.
private struct Numbers: RandomNumberGenerator {
    private var left: [UInt64]
    init(_ numbers: [UInt64]) { left = numbers }
    mutating func next() -> UInt64 { left.removeFirst() }
}
