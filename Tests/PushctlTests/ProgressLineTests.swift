import Testing

@testable import Pushctl

@Suite struct ProgressLineTests {
    /// Shows a state every 50 ms for 30 s, and returns the writes.
    private func writes(isTerminal: Bool) -> [String] {
        var writes: [String] = []
        var line = ProgressLine(isTerminal: isTerminal) { writes.append($0) }
        let start = ContinuousClock.now
        for step in 0..<600 { line.show("bar \(step)", plain: "plain \(step)", now: start + .milliseconds(50 * step)) }
        line.clear()
        return writes
    }

    @Test func `a terminal's line is redrawn ten times a second and removed at the end`() {
        let writes = writes(isTerminal: true)
        #expect(writes.count == 301)
        #expect(writes.first == "\rbar 0\u{1b}[K")
        #expect(writes.last == "\r\u{1b}[K")
    }

    @Test func `a file gets plain lines, one every ten seconds`() {
        #expect(writes(isTerminal: false) == ["plain 0\n", "plain 200\n", "plain 400\n"])
    }
}
