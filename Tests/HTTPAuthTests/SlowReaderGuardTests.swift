import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPAuth

@Suite struct SlowReaderGuardTests {
    private static func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: SlowReaderGuard(timeout: .seconds(30)))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private static func set(_ isWritable: Bool, _ channel: EmbeddedChannel) {
        channel.isWritable = isWritable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    @Test func `a client that does not read for 30 s is disconnected`() throws {
        let channel = try Self.channel()
        Self.set(false, channel)
        channel.embeddedEventLoop.advanceTime(by: .seconds(29))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    @Test func `a slow client that reads in time stays connected`() throws {
        let channel = try Self.channel()
        for _ in 0..<5 {
            Self.set(false, channel)
            channel.embeddedEventLoop.advanceTime(by: .seconds(29))
            Self.set(true, channel)
            channel.embeddedEventLoop.advanceTime(by: .seconds(40))
        }
        #expect(channel.isActive)
        _ = try channel.finish()
    }
}
