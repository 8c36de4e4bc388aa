import DequeModule
import PushProtocol
import Synchronization

/// The received requests: the latest in full, totals of all, and the phones they addressed.
///
/// Appending takes one lock. Encoding happens when the log is read. Safe from any thread.
final class RequestLog: Sendable {
    /// The maximum number of requests kept. Older ones only count in the totals; with 0, all do.
    let capacity: Int
    /// The maximum number of phones. Requests to further tokens only count in the totals.
    static let maximumPhones = 100_000

    private struct State {
        var sequence = 0
        var entries: Deque<LoggedRequest> = []
        var totals: [ProviderKind: RequestTotals] = [:]
        var phones: [Phone.ID: Phone] = [:]
    }

    private let state = Mutex(State())

    init(capacity: Int = 100_000) { self.capacity = max(capacity, 0) }

    @discardableResult
    func append(
        _ request: ProviderRequest, _ response: SimulatedResponse, provider: ProviderKind,
        environment: ProviderEnvironment
    ) -> LoggedRequest {
        state.withLock { state in
            let entry = LoggedRequest(
                sequence: state.sequence + 1, provider: provider, environment: environment, request: request,
                response: response)
            if state.entries.count == capacity { _ = state.entries.popFirst() }
            if capacity > 0 { state.entries.append(entry) }
            state.sequence += 1
            state.totals[provider, default: RequestTotals()].count(entry)
            if let token = response.target, !token.isEmpty {
                let id = Phone.ID(provider: provider, token: token)
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
    ///   - since: only requests with a greater sequence number.
    ///   - limit: the maximum number of requests; the oldest are returned.
    func requests(
        of provider: ProviderKind, where filter: LogFilter = LogFilter(), since: Int = 0, limit: Int = .max
    ) -> [LoggedRequest] {
        var found: [LoggedRequest] = []
        for entry in state.withLock({ $0.entries })
        where entry.provider == provider && entry.sequence > since && filter.admits(entry) {
            guard found.count < limit else { break }
            found.append(entry)
        }
        return found
    }

    func totals(of provider: ProviderKind) -> RequestTotals {
        state.withLock { $0.totals[provider] ?? RequestTotals() }
    }

    /// The phone with this token, if it received a request.
    func phone(_ id: Phone.ID) -> Phone? { state.withLock { $0.phones[id] } }

    /// All known phones, the most recently addressed first.
    var phones: [Phone] { state.withLock { Array($0.phones.values) }.sorted { $0.lastSequence > $1.lastSequence } }

    /// The number of the latest request.
    var lastSequence: Int { state.withLock { $0.sequence } }

    /// Clears requests, totals and phones; sequence numbers continue.
    func removeAll() {
        state.withLock { state in
            state.totals = [:]
            state.phones = [:]
            state.entries = []
        }
    }
}
