import HTTP2
import Synchronization

/// The measured loop: sends batches like a sender, with more requests waiting than streams.
struct PushLoad: Sendable {
    let client: HTTP2Client
    let payload: [UInt8]
    /// The number of batches in flight.
    let concurrentBatches: Int

    struct UnexpectedStatus: Error {
        var status: Int
    }

    /// Sends `requests` pushes and returns after the last response. Any status but 200 ends the run.
    func run(_ requests: Int) async throws -> ResourceSnapshot {
        let counter = BatchCounter()
        let shared = try HTTP2FieldBlock(Self.fields)
        try await withThrowingDiscardingTaskGroup { group in
            for _ in 0..<concurrentBatches {
                group.addTask {
                    while let batch = counter.next(of: requests) {
                        let pushes = Pushes(
                            first: batch.lowerBound, count: batch.count, shared: shared, payload: payload)
                        for answer in await client.execute(all: pushes, deadline: .seconds(30)) {
                            let status = try answer.get().status
                            guard status == 200 else { throw UnexpectedStatus(status: status) }
                        }
                    }
                }
            }
        }
        return .now()
    }

    private final class BatchCounter: Sendable {
        /// Requests per batch.
        private static let size = 50
        private let taken = Atomic(0)

        func next(of all: Int) -> Range<Int>? {
            let first = taken.add(Self.size, ordering: .relaxed).oldValue
            return first < all ? first..<min(first + Self.size, all) : nil
        }
    }

    /// The headers shared by all pushes of a notification.
    private static let fields = [
        HTTP2Header(name: "authorization", value: "bearer " + String(repeating: "x", count: 180)),
        HTTP2Header(name: "apns-topic", value: "com.example.app"),
        HTTP2Header(name: "apns-push-type", value: "alert"),
        HTTP2Header(name: "apns-priority", value: "10"),
        HTTP2Header(name: "apns-expiration", value: "1767229200"),
        HTTP2Header(name: "apns-collapse-id", value: "00000000-0000-0000-0000-000000000001"),
    ]
}

/// Pushes to consecutive device numbers.
private struct Pushes: HTTP2Requests {
    let first: Int
    let count: Int
    let shared: HTTP2FieldBlock
    let payload: [UInt8]

    func body(_ index: Int) -> [UInt8] { payload }

    func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", "POST")
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 10 + 64) { path in
            for (place, byte) in "/3/device/".utf8.enumerated() { path[place] = byte }
            write(first + index, into: UnsafeMutableBufferPointer(rebasing: path[10...]))
            fields.append(":path", UnsafeRawBufferPointer(path), neverIndexed: true)
        }
        fields.append(shared)
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 36) { id in
            write(first + index, into: id)
            for place in [8, 13, 18, 23] { id[place] = UInt8(ascii: "-") }
            fields.append("apns-id", UnsafeRawBufferPointer(id), neverIndexed: true)
        }
    }

    /// Fills `text` with `number` in hexadecimal.
    private func write(_ number: Int, into text: UnsafeMutableBufferPointer<UInt8>) {
        var rest = number
        for place in text.indices.reversed() {
            text[place] = "0123456789abcdef".utf8.withContiguousStorageIfAvailable { $0[rest & 15] } ?? 0
            rest >>= 4
        }
    }
}
