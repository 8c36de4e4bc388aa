import NIOCore
import NIOPosix

@testable import HTTP2

extension HTTP2Client {
    /// Returns the statistics after the event loop's current pass, which include the last response.
    func settledStatistics() async -> HTTP2ClientStatistics {
        // Fails only after the event loop was shut down.
        try? await eventLoop.submit {}.get()
        return statistics
    }

    /// Returns a client whose connections start with the stream id `firstStream`.
    static func nearlyExhausted(endpoint: HTTP2Endpoint, firstStream: UInt32) throws -> HTTP2Client {
        try HTTP2Client(
            endpoint: endpoint, configuration: .testing, eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            firstStream: firstStream, logger: testLogger())
    }
}
