#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A pipe that wakes a thread out of `poll`. `signal` is thread-safe.
final class WakeUpPipe: Sendable {
    private let reading: Int32
    private let writing: Int32

    /// Returns `nil` if the process has no file descriptor left.
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
        // A failed write means that the pipe is full, which wakes the thread as well.
        _ = write(writing, &byte, 1)
    }

    enum Readiness {
        case ready
        case signalled
        case timedOut
    }

    /// Waits for `socket`, a signal, or `deadline`. A socket with an error counts as ready: reading it returns the
    /// error.
    func wait(socket: Int32, toWrite: Bool, until deadline: ContinuousClock.Instant) -> Readiness {
        while true {
            let remaining = deadline - .now
            guard remaining > .zero else { return .timedOut }
            var descriptors = [
                pollfd(fd: socket, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0),
                pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
            ]
            // Rounded up, to avoid a busy loop in the last millisecond.
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

/// Whether the socket has input or is closed; does not wait.
func isReadable(_ socket: Int32) -> Bool {
    var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    return poll(&descriptor, 1, 0) != 0
}
