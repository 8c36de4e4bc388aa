import Foundation
import Synchronization

/// Writes lines to a file descriptor without ever blocking for good: when a pipe's reader does not keep up, lines are
/// dropped and counted.
///
/// Safe from any thread. The lock is held over poll(2) and write(2): a pipe that poll says has room takes `PIPE_BUF` bytes
/// at once, as long as no other thread of ours fills it in between.
final class LogSink: Sendable {
    private struct State {
        var dropped = 0
        var droppedInAll = 0
        /// Whether the last write found no room: then nobody waits again until one succeeds.
        var isCongested = false
    }

    /// How long one line may wait for room. Only the first that finds none does.
    private static let patience: Int32 = 100

    private let descriptor: Int32
    private let state = Mutex(State())

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// Lines dropped since the process began.
    var droppedLines: Int { state.withLock { $0.droppedInAll } }

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Writes the line that `render` makes; it is told how many lines were dropped before it.
    func write(_ render: (_ dropped: Int) -> [UInt8]) {
        state.withLock { state in
            if hasRoom(waiting: state.isCongested ? 0 : Self.patience), write(whole: render(state.dropped)) {
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
