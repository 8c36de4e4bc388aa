import PushProtocol
import PushSending
import Synchronization
import TestSupport

/// A clock that a test advances.
final class ManualTime: Sendable {
    private struct Sleeper {
        var until: Duration
        var wake: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var uptime = Duration.zero
        var sleepers: [Int: Sleeper] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    var clock: SenderClock {
        SenderClock(
            now: { .sample + self.uptime }, uptime: { self.uptime }, sleep: { try await self.sleep($0) })
    }

    var uptime: Duration { state.withLock(\.uptime) }
    var sleepers: Int { state.withLock(\.sleepers.count) }

    func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.uptime += duration
            let woken = state.sleepers.filter { $0.value.until <= state.uptime }
            for id in woken.keys { state.sleepers[id] = nil }
            return woken.values
        }
        for sleeper in woken { sleeper.wake.resume() }
    }

    private func sleep(_ duration: Duration) async throws {
        let id = state.withLock { state in
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wake in
                state.withLock { $0.sleepers[id] = Sleeper(until: $0.uptime + duration, wake: wake) }
                // Cancelled before it was added, so the handler below did not find it.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func cancel(_ id: Int) {
        state.withLock { $0.sleepers.removeValue(forKey: id) }?.wake.resume(throwing: CancellationError())
    }
}
