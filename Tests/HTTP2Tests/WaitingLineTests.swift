import Testing

@testable import HTTP2

struct WaitingLineTests {
    /// In which order all leave.
    private func leaving(_ line: WaitingLine<Int>) -> [Int] {
        var line = line
        var left: [Int] = []
        while let next = line.next {
            left.append(next)
            line.takeNext()
        }
        return left
    }

    @Test func `nobody waits behind the background`() {
        var line = WaitingLine<Int>()
        line.append([101, 102], .background)
        line.append([1, 2], .normal)
        #expect(line.next == 1)
        #expect(leaving(line) == [1, 2, 101, 102])
    }

    @Test func `of the background every eighth goes, however many others there are`() {
        var line = WaitingLine<Int>()
        line.append(Array(1...16), .normal)
        line.append([101, 102, 103], .background)
        #expect(leaving(line) == Array(1...7) + [101] + Array(8...14) + [102, 15, 16, 103])
    }

    @Test func `who comes while nobody else waits does not owe the background for it`() {
        var line = WaitingLine<Int>()
        line.append(Array(1...20), .normal)
        for _ in 1...20 { line.takeNext() }
        line.append([101], .background)
        line.append([21], .normal)
        #expect(leaving(line) == [21, 101])
    }

    @Test func `who is gone takes nobody's turn and earns nobody one`() {
        var line = WaitingLine<Int>()
        line.append(Array(1...8), .normal)
        line.append([101, 102], .background)
        for _ in 1...7 { line.dropNext() }
        #expect(line.next == 8)
        line.append(Array(9...15), .normal)
        for _ in 8...14 { line.takeNext() }
        #expect(line.next == 101)
        line.dropNext()
        #expect(leaving(line) == [102, 15])
    }

    @Test func `who comes back is first of its own, and who is gone is passed over`() {
        var line = WaitingLine<Int>()
        line.append([1, 2], .normal)
        line.append([101, 102], .background)
        line.prepend(100, .background)
        line.prepend(0, .normal)
        #expect(leaving(line) == [0, 1, 2, 100, 101, 102])
        line.removeAll { $0.isMultiple(of: 2) }
        #expect(Set(line.all) == [1, 101])
        line.removeAll()
        #expect(line.next == nil)
    }
}
