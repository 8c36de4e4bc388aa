import Glibc
import TestSupport
import Testing

@testable import AMQP

@Suite struct StallGuardTests {
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

    @Test func `the socket of a thread that stopped turning is shut down`() {
        Self.withSockets { ours, peers in
            let stallGuard = StallGuard(limit: .seconds(2))
            let now = ContinuousClock.now
            stallGuard.watch(ours)
            stallGuard.tick(now)
            #expect(stallGuard.breakStalled(now + .seconds(2)) == nil)
            #expect(!Self.isEnded(peers))
            #expect(stallGuard.breakStalled(now + .seconds(3)) == .seconds(3))
            #expect(Self.isEnded(peers))
        }
    }

    @Test func `a thread that turns is left alone`() {
        Self.withSockets { ours, peers in
            let stallGuard = StallGuard(limit: .seconds(2))
            let now = ContinuousClock.now
            stallGuard.watch(ours)
            stallGuard.tick(now + .seconds(5))
            #expect(stallGuard.breakStalled(now + .seconds(6)) == nil)
            #expect(!Self.isEnded(peers))
        }
    }

    @Test func `a released socket is never touched`() {
        Self.withSockets { ours, peers in
            let stallGuard = StallGuard(limit: .seconds(2))
            stallGuard.watch(ours)
            stallGuard.release()
            #expect(stallGuard.breakStalled(.now + .seconds(100)) == nil)
            #expect(!Self.isEnded(peers))
        }
    }

    @Test func `the guard's own thread does it`() async throws {
        var pair: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
        let descriptors = pair
        defer { for descriptor in descriptors { close(descriptor) } }
        let stallGuard = StallGuard(limit: .milliseconds(50))
        stallGuard.watch(descriptors[0])
        try stallGuard.start("test") { _ in }
        defer { stallGuard.end() }
        try await eventually { Self.isEnded(descriptors[1]) }
    }
}
