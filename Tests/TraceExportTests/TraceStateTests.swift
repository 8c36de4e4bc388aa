import Testing

@testable import TraceExport

@Suite struct TraceStateTests {
    @Test func `a state of printable characters is passed on, up to 512 bytes`() {
        #expect(TraceState.valid("a=1,b=2") == "a=1,b=2")
        #expect(TraceState.valid(String(repeating: "a", count: 512)) != nil)
        for text in ["", "a=\n", "a=é", String(repeating: "a", count: 513)] { #expect(TraceState.valid(text) == nil) }
        #expect(TraceState.valid(nil) == nil)
    }
}
