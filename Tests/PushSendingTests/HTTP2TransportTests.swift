import HTTP2
import Testing

@testable import PushSending

@Suite struct HTTP2TransportTests {
    @Test(
        arguments: [
            (.notProcessed(HTTP2Failure(.queueFull, "10000 requests wait")), .deferred(reason: "queue-full")),
            (.notProcessed(HTTP2Failure(.noStream, "")), .deferred(reason: "no-stream")),
            (.cancelled(written: false), .deferred(reason: "cancelled")),
            (.cancelled(written: true), .ambiguous(reason: "cancelled")),
            (.deadlineExceeded(written: false), .notProcessed(reason: "timed-out")),
            (.closed, .deferred(reason: "client-closed")),
            (.notProcessed(HTTP2Failure(.goAway, "")), .notProcessed(reason: "goaway")),
            (.notProcessed(HTTP2Failure(.connectFailed, "10.0.0.1")), .unreachable(reason: "connect-failed")),
            (.deadlineExceeded(written: true), .timedOut),
        ] as [(HTTP2Error, TransportError)])
    func `local errors are not taken for errors of the provider`(error: HTTP2Error, meaning: TransportError) {
        #expect(TransportError(error) == meaning)
    }
}
