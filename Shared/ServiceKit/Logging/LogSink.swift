import Foundation
import Synchronization

/// Writes lines to a file descriptor. Never blocks permanently: when a pipe's reader is too slow, lines are dropped and
/// counted.
///
/// Thread-safe. Holds the lock over poll(2) and write(2): a pipe reported writable accepts `PIPE_BUF` bytes only if no
/// other thread writes in between.
final class LogSink: Sendable {
    private struct State {
        var dropped = 0
        var droppedInAll = 0
        /// Whether the last line was dropped. Further writes do not wait until one succeeds.
        var isCongested = false
    }

    /// The longest wait for room, in milliseconds; applies to the first line that finds none.
    private static let timeout: Int32 = 100

    private let descriptor: Int32
    private let state = Mutex(State())

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// The lines dropped since the process started.
    var droppedLines: Int { state.withLock { $0.droppedInAll } }

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Writes the line of `render`, which gets the number of lines dropped before it.
    func write(_ render: (_ dropped: Int) -> [UInt8]) {
        state.withLock { state in
            if hasRoom(waiting: state.isCongested ? 0 : Self.timeout), write(whole: render(state.dropped)) {
                state.dropped = 0
                state.isCongested = false
            } else {
                state.dropped += 1
                state.droppedInAll += 1
                state.isCongested = true
            }
        }
    }

    private func hasRoom(waiting milliseconds: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&request, 1, milliseconds) == 1 && request.revents & Int16(POLLOUT) != 0
    }

    private func write(whole line: [UInt8]) -> Bool {
        while true {
            let written = line.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 { return written == line.count }
            if errno != EINTR { return false }
        }
    }
}
