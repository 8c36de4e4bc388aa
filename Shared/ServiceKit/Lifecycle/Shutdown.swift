import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Signal handling: the first SIGTERM or SIGINT starts a graceful shutdown, the second exits at once. Exits too if work
/// has not ended some time after the deadline. That is safe: the broker redelivers unacknowledged messages.
final class Shutdown: Sendable {
    private enum State {
        case starting
        case running(ServiceGroup)
        case stopping(since: ContinuousClock.Instant)
    }

    /// The time for cancelled work to end after the deadline.
    private static let grace: Duration = .seconds(5)

    private let deadline: Duration
    private let logger: Logger
    private let state = Mutex(State.starting)

    init(deadline: Duration, logger: Logger) {
        self.deadline = deadline
        self.logger = logger
    }

    /// Whether a shutdown started and its deadline has passed.
    var exceededDeadline: Bool {
        state.withLock {
            if case .stopping(let since) = $0 { since.duration(to: .now) >= deadline } else { false }
        }
    }

    /// Directs signals to `group`. An earlier signal exits the process.
    func attach(_ group: ServiceGroup) { state.withLock { $0 = .running(group) } }

    /// Traps the signals before it returns, and handles them until the process exits.
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
            logger.warning("Second signal; exiting at once", metadata: ["signal": "\(signal)"])
            _exit(128 + signal.rawValue)
        }
    }

    /// Exits the process after the deadline, even if work ignores its cancellation.
    private func endAfterDeadline() {
        Task.detached { [self] in
            try await Task.sleep(for: deadline + Self.grace)
            logger.error("Work did not stop in time; exiting", metadata: ["deadline": "\(deadline.spelled)"])
            _exit(ExitCode.failure.rawValue)
        }
    }
}
