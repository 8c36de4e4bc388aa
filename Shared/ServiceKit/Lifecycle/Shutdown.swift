import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// What signals do: the first SIGTERM or SIGINT begins a graceful shutdown, the second ends the process at once, and
/// so does work that has not ended some time after its deadline. Ending without acknowledgements is safe: the broker
/// delivers again.
final class Shutdown: Sendable {
    private enum State {
        case starting
        case running(ServiceGroup)
        case stopping(since: ContinuousClock.Instant)
    }

    /// How long cancelled work may take to end after the deadline.
    private static let grace: Duration = .seconds(5)

    private let deadline: Duration
    private let logger: Logger
    private let state = Mutex(State.starting)

    init(deadline: Duration, logger: Logger) {
        self.deadline = deadline
        self.logger = logger
    }

    /// How long it took, if a shutdown was asked for and it ended after its deadline.
    var overran: Bool {
        state.withLock {
            if case .stopping(let since) = $0 { since.duration(to: .now) >= deadline } else { false }
        }
    }

    /// Signals from here on reach `group`. One that came earlier ended the process.
    func attach(_ group: ServiceGroup) { state.withLock { $0 = .running(group) } }

    /// Traps the signals before it returns, and obeys them for as long as the process lives.
    func watch() async {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        Task.detached { [self] in
            for await signal in signals { await received(signal) }
        }
    }

    private func received(_ signal: UnixSignal) async {
        let before = state.withLock { state in
            defer { state = .stopping(since: .now) }
            return state
        }
        switch before {
        case .starting:
            _exit(ExitCode.success.rawValue)
        case .running(let group):
            logger.info("Shutting down", metadata: ["signal": "\(signal)", "deadline": "\(deadline.spelled)"])
            endAfterDeadline()
            await group.triggerGracefulShutdown()
        case .stopping:
            logger.warning("Ending at once: second signal", metadata: ["signal": "\(signal)"])
            _exit(128 + signal.rawValue)
        }
    }

    /// Cancellation is a request; this is not.
    private func endAfterDeadline() {
        Task.detached { [self] in
            try await Task.sleep(for: deadline + Self.grace)
            logger.error("Ending: work did not stop in time", metadata: ["deadline": "\(deadline.spelled)"])
            _exit(ExitCode.failure.rawValue)
        }
    }
}
