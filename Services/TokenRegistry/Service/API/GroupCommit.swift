import FoundationEssentials
import Postgres
import RegistryStore

/// Batches registration requests of many clients into few transactions. Requests that arrive during a transaction share
/// the next one and its commit to disk. The first request starts a transaction at once.
///
/// Several transactions run in parallel, so a lock wait delays only the requests of its own batch. The number of
/// waiting requests is bounded; further ones fail with ``Full``.
actor GroupCommit {
    /// Stores requests in one transaction.
    ///
    /// - Returns: the devices that are new to their user.
    typealias Store = @Sendable ([RegistrationRequest]) async throws -> Set<UUID>

    /// Maximum requests of a transaction. It bounds lock times to milliseconds.
    static let mostClaims = 128
    static let mostTransactions = 4
    /// Maximum waiting requests. Four transactions of 128 requests in 10 ms store these in about 80 ms.
    static let defaultMaximumWaiting = 4096
    /// Statement timeouts of one batch after which the rest of the batch fails.
    static let mostTimeouts = 8

    /// Too many requests are waiting.
    struct Full: Error {}

    private let store: Store
    private let mostWaiting: Int
    private var waiting: [Waiting] = []
    private var transactions = 0

    private struct Waiting {
        let claim: RegistrationRequest
        let answer: CheckedContinuation<Bool, any Error>
    }

    init(mostWaiting: Int = defaultMaximumWaiting, _ store: @escaping Store) {
        self.mostWaiting = mostWaiting
        self.store = store
    }

    /// Requests that no transaction has taken yet.
    var backlog: Int { waiting.count }

    /// Stores a request. Returns after the commit.
    ///
    /// - Returns: whether the device is new to its user.
    /// - Throws: ``Full``, or the store's error for this request. Errors of other requests are not thrown.
    @discardableResult
    func register(_ claim: RegistrationRequest) async throws -> Bool {
        guard waiting.count < mostWaiting else { throw Full() }
        return try await withCheckedThrowingContinuation { answer in
            waiting.append(Waiting(claim: claim, answer: answer))
            guard transactions < Self.mostTransactions else { return }
            transactions += 1
            Task { await storeWaiting() }
        }
    }

    private func storeWaiting() async {
        while !waiting.isEmpty {
            let batch = Array(waiting.prefix(Self.mostClaims))
            waiting.removeFirst(batch.count)
            var timeouts = 0
            await commit(batch, &timeouts)
        }
        transactions -= 1
    }

    private func commit(_ batch: [Waiting], _ timeouts: inout Int) async {
        do {
            let arrived = try await store(batch.map(\.claim))
            for one in batch { one.answer.resume(returning: arrived.contains(one.claim.device)) }
        } catch {
            let failure = error as? PostgresError
            if failure?.isTimeout == true {
                timeouts += 1
                guard batch.count > 1, timeouts < Self.mostTimeouts else { return fail(batch, error) }
                // One request may wait for a lock or be slow. Split the batch, so that the others succeed.
                let middle = batch.count / 2
                await commit(Array(batch[..<middle]), &timeouts)
                await commit(Array(batch[middle...]), &timeouts)
            } else if failure?.isOutage == true {
                // The database is away, so all waiting requests fail.
                let everyone = waiting
                waiting = []
                fail(batch + everyone, error)
            } else if batch.count == 1 {
                fail(batch, error)
            } else {
                // A transaction's error does not name the request. Store them one by one.
                for one in batch { await commit([one], &timeouts) }
            }
        }
    }

    private func fail(_ batch: [Waiting], _ error: any Error) {
        for one in batch { one.answer.resume(throwing: error) }
    }
}
