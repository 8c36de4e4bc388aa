import HTTP2
import Providers
import PushProtocol
import PushSending
import Synchronization
import Testing
import TestSupport

@testable import WebPushSender

@Suite(.timeLimit(.minutes(1))) struct OriginPoolTests {
    private static func endpoint(_ name: String) throws -> WebPushEndpoint {
        try WebPushEndpoint("https://\(name).push.example/x")
    }

    @Test func `the longest unused push service makes room, and one in use stays`() async throws {
        let sender = try await WebPushSenderUnderTest(origins: 2)
        let pool = sender.pool
        let a = try #require(try pool.acquire(Self.endpoint("a")))
        sender.time.advance(by: .seconds(1))
        let b = try #require(try pool.acquire(Self.endpoint("b")))
        // Both are in use.
        #expect(try pool.acquire(Self.endpoint("c")) == nil && pool.count == 2)
        pool.release(a)
        #expect(try pool.acquire(Self.endpoint("c")) != nil && pool.count == 2)
        #expect(try pool.acquire(Self.endpoint("b")) === b)
        await sender.stop()
        #expect(try pool.acquire(Self.endpoint("b")) == nil)
    }

    @Test func `idle push services are closed, except halted ones`() async throws {
        let sender = try await WebPushSenderUnderTest()
        for name in ["a", "b"] {
            let origin = try #require(try sender.pool.acquire(Self.endpoint(name)))
            if name == "b" {
                _ = origin.state.withLock { $0.record([.halted(reason: "HTTP 403")], isProbe: false, now: .zero) }
            }
            sender.pool.release(origin)
        }
        sender.time.advance(by: OriginPool.idleTime - .seconds(1))
        await sender.pool.closeIdle()
        #expect(sender.pool.count == 2)
        sender.time.advance(by: .seconds(1))
        await sender.pool.closeIdle()
        #expect(sender.pool.count == 1 && sender.pool.pausedCount == 1)
        await sender.stop()
    }
}
