import HTTP2
import Synchronization

/// The measuring loop: always so many requests in flight, each a push as a sender makes it, until all are answered.
struct PushLoad: Sendable {
    let client: HTTP2Client
    let payload: [UInt8]
    let inFlight: Int

    struct Unexpected: Error {
        var status: Int
    }

    /// Sends `requests` pushes, and returns when the last was answered. Anything but 200 ends the run.
    func run(_ requests: Int) async throws -> Moment {
        let numbers = Numbers()
        try await withThrowingDiscardingTaskGroup { group in
            for _ in 0..<inFlight {
                group.addTask {
                    let shared = fields
                    while true {
                        let number = numbers.next()
                        guard number < requests else { return }
                        let response = try await client.execute(request(number, shared), deadline: .seconds(30))
                        guard response.status == 200 else { throw Unexpected(status: response.status) }
                    }
                }
            }
        }
        return .now()
    }

    private final class Numbers: Sendable {
        private let taken = Atomic(0)

        func next() -> Int { taken.add(1, ordering: .relaxed).oldValue }
    }

    private func request(_ number: Int, _ shared: [HTTP2Header]) -> HTTP2Request {
        let id = "00000000-0000-0000-0000-\(padded(number, 12))"
        return HTTP2Request(
            path: "/3/device/\(padded(number, 64))",
            headers: [HTTP2Header(name: "apns-id", value: id, neverIndexed: true)] + shared, body: payload)
    }

    private func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: width - digits.count) + digits
    }

    /// What every push of one notification shares.
    private var fields: [HTTP2Header] {
        [
            HTTP2Header(name: "authorization", value: "bearer " + String(repeating: "x", count: 180)),
            HTTP2Header(name: "apns-topic", value: "com.example.app"),
            HTTP2Header(name: "apns-push-type", value: "alert"),
            HTTP2Header(name: "apns-priority", value: "10"),
            HTTP2Header(name: "apns-expiration", value: "1767229200"),
            HTTP2Header(name: "apns-collapse-id", value: "00000000-0000-0000-0000-000000000001"),
        ]
    }
}
