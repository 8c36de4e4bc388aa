@testable import HTTP2
import NIOCore
import NIOPosix

extension HTTP2Client {
    /// The statistics after the event loop's present turn: what led to an answer is counted by then.
    func settledStatistics() async -> HTTP2ClientStatistics {
        // Fails only when the event loop is shut down, and then nothing changes any more.
        try? await eventLoop.submit {}.get()
        return statistics
    }

    /// A client whose connections begin with `firstStream`, to see them run out of stream ids.
    static func nearlyExhausted(endpoint: HTTP2Endpoint, firstStream: UInt32) throws -> HTTP2Client {
        try HTTP2Client(
            endpoint: endpoint, configuration: .testing, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            firstStream: firstStream, logger: testLogger())
    }
}
