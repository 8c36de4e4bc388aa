import PushProtocol
import Synchronization

/// What the simulator received: the latest requests, the totals of all, and the phones they were for.
///
/// Appending takes one lock and no other thread; everything that costs is done when someone asks. Safe from any thread.
final class RequestLog: Sendable {
    /// How many requests are kept; older ones only count. With 0 nothing but counts is kept.
    let capacity: Int
    /// How many phones are known; requests for further tokens only count.
    static let maximumPhones = 100_000

    private struct State {
        var sequence = 0
        /// A ring: once full, `oldest` is where the next entry goes.
        var entries: [LoggedRequest] = []
        var oldest = 0
        var totals: [Party: Totals] = [:]
        var phones: [Phone.ID: Phone] = [:]
    }

    private let state = Mutex(State())

    init(capacity: Int = 100_000) { self.capacity = max(capacity, 0) }

    @discardableResult
    func append(
        _ request: ProviderRequest, _ verdict: Verdict, party: Party, environment: ProviderEnvironment
    ) -> LoggedRequest {
        state.withLock { state in
            let entry = LoggedRequest(
                sequence: state.sequence + 1, party: party, environment: environment, request: request,
                verdict: verdict)
            if state.entries.count < capacity {
                state.entries.append(entry)
            } else if capacity > 0 {
                state.entries[state.oldest] = entry
                state.oldest = (state.oldest + 1) % capacity
            }
            state.sequence += 1
            state.totals[party, default: Totals()].count(entry)
            if let token = verdict.target, !token.isEmpty {
                let id = Phone.ID(party: party, token: token)
                if state.phones[id] != nil || state.phones.count < Self.maximumPhones {
                    state.phones[id, default: Phone(id)].record(entry)
                }
            }
            return entry
        }
    }

    /// The kept requests of a provider, oldest first.
    ///
    /// - Parameters:
    ///   - since: only those with a greater sequence number.
    ///   - limit: at most this many, the oldest of them.
    func requests(
        of party: Party, where filter: LogFilter = LogFilter(), since: Int = 0, limit: Int = .max
    ) -> [LoggedRequest] {
        let (entries, oldest) = state.withLock { ($0.entries, $0.oldest) }
        var found: [LoggedRequest] = []
        for entry in [entries[oldest...], entries[..<oldest]].joined()
        where entry.party == party && entry.sequence > since && filter.admits(entry) {
            guard found.count < limit else { break }
            found.append(entry)
        }
        return found
    }

    func totals(of party: Party) -> Totals { state.withLock { $0.totals[party] ?? Totals() } }

    /// The phone with this token, if anything was sent to it.
    func phone(_ id: Phone.ID) -> Phone? { state.withLock { $0.phones[id] } }

    /// Every known phone, the last one to get something first.
    var phones: [Phone] { state.withLock { Array($0.phones.values) }.sorted { $0.lastSequence > $1.lastSequence } }

    /// The number of the latest request.
    var lastSequence: Int { state.withLock { $0.sequence } }

    /// Forgets requests, totals and phones; the numbering goes on.
    func removeAll() {
        state.withLock { state in
            state.totals = [:]
            state.phones = [:]
            state.entries = []
            state.oldest = 0
        }
    }
}
