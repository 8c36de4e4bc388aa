import Testing

@testable import HTTP2

struct PendingRequestQueueTests {
    /// Returns all elements in the order in which they are taken.
    private func order(of queue: PendingRequestQueue<Int>) -> [Int] {
        var queue = queue
        var order: [Int] = []
        while let next = queue.next {
            order.append(next)
            queue.takeNext()
        }
        return order
    }

    @Test func `normal requests go before background requests`() {
        var queue = PendingRequestQueue<Int>()
        queue.append([101, 102], .background)
        queue.append([1, 2], .normal)
        #expect(queue.next == 1)
        #expect(order(of: queue) == [1, 2, 101, 102])
    }

    @Test func `background requests get every eighth stream`() {
        var queue = PendingRequestQueue<Int>()
        queue.append(Array(1...16), .normal)
        queue.append([101, 102, 103], .background)
        #expect(order(of: queue) == Array(1...7) + [101] + Array(8...14) + [102, 15, 16, 103])
    }

    @Test func `normal requests sent while no background request waits do not count`() {
        var queue = PendingRequestQueue<Int>()
        queue.append(Array(1...20), .normal)
        for _ in 1...20 { queue.takeNext() }
        queue.append([101], .background)
        queue.append([21], .normal)
        #expect(order(of: queue) == [21, 101])
    }

    @Test func `dropped requests do not count for the share of the background`() {
        var queue = PendingRequestQueue<Int>()
        queue.append(Array(1...8), .normal)
        queue.append([101, 102], .background)
        for _ in 1...7 { queue.dropNext() }
        #expect(queue.next == 8)
        queue.append(Array(9...15), .normal)
        for _ in 8...14 { queue.takeNext() }
        #expect(queue.next == 101)
        queue.dropNext()
        #expect(order(of: queue) == [102, 15])
    }

    @Test func `a prepended request is first of its priority, and removed ones are skipped`() {
        var queue = PendingRequestQueue<Int>()
        queue.append([1, 2], .normal)
        queue.append([101, 102], .background)
        queue.prepend(100, .background)
        queue.prepend(0, .normal)
        #expect(order(of: queue) == [0, 1, 2, 100, 101, 102])
        queue.removeAll { $0.isMultiple(of: 2) }
        #expect(Set(queue.all) == [1, 101])
        queue.removeAll()
        #expect(queue.next == nil)
    }
}
