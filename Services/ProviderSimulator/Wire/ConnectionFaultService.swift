import PushProtocol
import ServiceLifecycle
import Synchronization

/// Runs injected connection faults at their times, until the process shuts down.
struct ConnectionFaultService: Service {
    let faultInjection: FaultInjection
    let simulator: Simulator
    let ports: ProviderPorts

    func run() async throws {
        await withDiscardingTaskGroup { group in
            for await (id, connectionFault) in faultInjection.posted.cancelOnGracefulShutdown() {
                group.addTask { await carryOut(connectionFault, id) }
            }
            group.cancelAll()
        }
    }

    private func carryOut(_ connectionFault: ConnectionFault, _ id: Int) async {
        let clock = ContinuousClock()
        // Scheduled from a fixed start, so that the run time of a fault does not shift the next one.
        var next = clock.now + connectionFault.delay
        repeat {
            guard (try? await clock.sleep(until: next)) != nil, faultInjection.isActive(id) else { return }
            simulator.apply(connectionFault)
            let touched = ports.perform(
                connectionFault.actions, on: connectionFault.selection, of: connectionFault.ports)
            faultInjection.recordRun(id, connections: touched)
            next += connectionFault.every ?? .zero
        } while connectionFault.every != nil && faultInjection.isActive(id)
    }
}

/// The posted connection faults with their run counts. Safe from any thread.
final class FaultInjection: Sendable {
    struct PostedFault: Sendable {
        let connectionFault: ConnectionFault
        var times = 0
        /// The connections affected, summed over all runs.
        var connections = 0
        var isEnded = false
    }

    private struct State {
        var entries: [Int: PostedFault] = [:]
        var lastID = 0
    }

    let posted: AsyncStream<(Int, ConnectionFault)>
    private let continuation: AsyncStream<(Int, ConnectionFault)>.Continuation
    private let state = Mutex(State())
    /// The maximum number of faults kept, active and ended.
    private static let maximumEntries = 10_000

    init() { (posted, continuation) = AsyncStream.makeStream() }

    func post(_ faults: [ConnectionFault]) {
        for connectionFault in faults {
            let id = state.withLock { state in
                if state.entries.count >= Self.maximumEntries {
                    state.entries = state.entries.filter { !$0.value.isEnded }
                }
                state.lastID += 1
                state.entries[state.lastID] = PostedFault(connectionFault: connectionFault)
                return state.lastID
            }
            continuation.yield((id, connectionFault))
        }
    }

    func removeAll() { state.withLock { $0.entries = [:] } }

    func isActive(_ id: Int) -> Bool { state.withLock { $0.entries[id].map { !$0.isEnded } ?? false } }

    /// Counts one run; the last run ends the fault.
    func recordRun(_ id: Int, connections: Int) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.times += 1
            entry.connections += connections
            entry.isEnded =
                entry.connectionFault.every == nil || entry.connectionFault.count.map { entry.times >= $0 } ?? false
            state.entries[id] = entry
        }
    }

    var entries: [PostedFault] {
        state.withLock { state in state.entries.sorted { $0.key < $1.key }.map(\.value) }
    }

    func write(to writer: inout JSONWriter) {
        writer.array(entries) { writer, entry in
            writer.object { writer in
                writer.member("name", entry.connectionFault.name)
                writer.member("times", entry.times)
                writer.member("connections", entry.connections)
                writer.name("active")
                writer.value(.bool(!entry.isEnded))
            }
        }
    }
}
