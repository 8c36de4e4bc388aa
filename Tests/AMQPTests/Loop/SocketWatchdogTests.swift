import Glibc
import Testing
import TestSupport

@testable import AMQP

@Suite struct SocketWatchdogTests {
    /// Two connected sockets, closed at the end.
    private static func withSockets(_ body: (Int32, Int32) throws -> Void) rethrows {
        var pair: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
        defer { for descriptor in pair { close(descriptor) } }
        try body(pair[0], pair[1])
    }

    private static func isEnded(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0
    }

    @Test func `the socket of a blocked thread is shut down`() {
        Self.withSockets { ours, peers in
            let watchdog = SocketWatchdog(limit: .seconds(2))
            let now = ContinuousClock.now
            watchdog.watch(ours)
            watchdog.tick(now)
            #expect(watchdog.shutDownIfStalled(now + .seconds(2)) == nil)
            #expect(!Self.isEnded(peers))
            #expect(watchdog.shutDownIfStalled(now + .seconds(3)) == .seconds(3))
            #expect(Self.isEnded(peers))
        }
    }

    @Test func `the socket of a running thread stays open`() {
        Self.withSockets { ours, peers in
            let watchdog = SocketWatchdog(limit: .seconds(2))
            let now = ContinuousClock.now
            watchdog.watch(ours)
            watchdog.tick(now + .seconds(5))
            #expect(watchdog.shutDownIfStalled(now + .seconds(6)) == nil)
            #expect(!Self.isEnded(peers))
        }
    }

    @Test func `a released socket stays open`() {
        Self.withSockets { ours, peers in
            let watchdog = SocketWatchdog(limit: .seconds(2))
            watchdog.watch(ours)
            watchdog.release()
            #expect(watchdog.shutDownIfStalled(.now + .seconds(100)) == nil)
            #expect(!Self.isEnded(peers))
        }
    }

    @Test func `the watchdog's thread shuts the socket down`() async throws {
        var pair: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
        let descriptors = pair
        defer { for descriptor in descriptors { close(descriptor) } }
        let watchdog = SocketWatchdog(limit: .milliseconds(50))
        watchdog.watch(descriptors[0])
        try watchdog.start("test") { _ in }
        defer { watchdog.end() }
        try await eventually { Self.isEnded(descriptors[1]) }
    }
}
