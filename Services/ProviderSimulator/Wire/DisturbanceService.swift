import Logging
import PushProtocol
import ServiceLifecycle
import Synchronization

/// Carries out disturbances at their times, from the start of the process to its shutdown.
struct DisturbanceService: Service {
    let disturbances: Disturbances
    let simulator: Simulator
    let ports: ProviderPorts

    func run() async throws {
        await withDiscardingTaskGroup { group in
            for await (id, disturbance) in disturbances.posted.cancelOnGracefulShutdown() {
                group.addTask { await carryOut(disturbance, id) }
            }
            group.cancelAll()
        }
    }

    private func carryOut(_ disturbance: Disturbance, _ id: Int) async {
        let clock = ContinuousClock()
        // From a fixed start, so that every second stays every second however long the doing takes.
        var next = clock.now + disturbance.delay
        repeat {
            guard (try? await clock.sleep(until: next)) != nil, disturbances.isActive(id) else { return }
            simulator.disturb(disturbance)
            let touched = ports.perform(disturbance.acts, on: disturbance.selection, of: disturbance.ports)
            disturbances.recordTime(id, connections: touched)
            next += disturbance.every ?? .zero
        } while disturbance.every != nil && disturbances.isActive(id)
    }
}

/// The disturbances that were posted: those in force, and how often each was carried out. Safe from any thread.
final class Disturbances: Sendable {
    struct Entry: Sendable {
        let disturbance: Disturbance
        var times = 0
        /// Connections it was done to, summed over the times.
        var connections = 0
        var isEnded = false
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var lastID = 0
    }

    let posted: AsyncStream<(Int, Disturbance)>
    private let continuation: AsyncStream<(Int, Disturbance)>.Continuation
    private let state = Mutex(State())
    /// What is remembered of ended ones: enough for any run, and a bound.
    private static let maximumEntries = 10_000

    init() { (posted, continuation) = AsyncStream.makeStream() }

    func post(_ disturbances: [Disturbance]) {
        for disturbance in disturbances {
            let id = state.withLock { state in
                if state.entries.count >= Self.maximumEntries {
                    state.entries = state.entries.filter { !$0.value.isEnded }
                }
                state.lastID += 1
                state.entries[state.lastID] = Entry(disturbance: disturbance)
                return state.lastID
            }
            continuation.yield((id, disturbance))
        }
    }

    /// Ends and forgets all of them.
    func removeAll() { state.withLock { $0.entries = [:] } }

    func isActive(_ id: Int) -> Bool { state.withLock { $0.entries[id].map { !$0.isEnded } ?? false } }

    /// Takes note that one was carried out; its last time ends it.
    func recordTime(_ id: Int, connections: Int) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            entry.times += 1
            entry.connections += connections
            entry.isEnded = entry.disturbance.every == nil || entry.disturbance.count.map { entry.times >= $0 } ?? false
            state.entries[id] = entry
        }
    }

    var entries: [Entry] {
        state.withLock { state in state.entries.sorted { $0.key < $1.key }.map(\.value) }
    }

    func write(to writer: inout JSONWriter) {
        writer.array(entries) { writer, entry in
            writer.object { writer in
                writer.member("name", entry.disturbance.name)
                writer.member("times", entry.times)
                writer.member("connections", entry.connections)
                writer.name("active")
                writer.value(.bool(!entry.isEnded))
            }
        }
    }
}
