#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A pipe that ends a `poll` from another thread. Signalling may happen on any thread, at any time; what a signal means
/// is decided by who wakes up.
final class WakeUp: Sendable {
    private let reading: Int32
    private let writing: Int32

    /// `nil` when the process has no file descriptor left.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    func signal() {
        var byte: UInt8 = 1
        // A full pipe wakes just as well.
        _ = write(writing, &byte, 1)
    }

    enum Readiness {
        case ready
        case signalled
        case timedOut
    }

    /// Waits for `socket`, for a signal, or for `deadline`. A socket in error is ready: reading it tells what is wrong.
    func wait(socket: Int32, toWrite: Bool, until deadline: ContinuousClock.Instant) -> Readiness {
        while true {
            let remaining = deadline - .now
            guard remaining > .zero else { return .timedOut }
            var descriptors = [
                pollfd(fd: socket, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0),
                pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
            ]
            // Rounded up, or the last millisecond would be spent spinning.
            let milliseconds = Int32(min(remaining / .milliseconds(1), 3_600_000).rounded(.up))
            guard poll(&descriptors, 2, milliseconds) > 0 else { continue }
            if descriptors[1].revents != 0 {
                drain()
                return .signalled
            }
            return .ready
        }
    }

    private func drain() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(reading, &bytes, bytes.count) > 0 {}
    }
}

/// Whether there is something to read, or the end, without waiting.
func isReadable(_ socket: Int32) -> Bool {
    var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    return poll(&descriptor, 1, 0) != 0
}
