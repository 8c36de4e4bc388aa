import Postgres
import PushProtocol

/// Stores what many clients register at once in few transactions: what arrives while others are being stored is stored
/// next, together, so that many share one commit to disk. Nobody waits for company: whoever comes first goes at once.
///
/// Several transactions run beside each other, so that one which waits for a lock holds up its own company only.
actor GroupCommit {
    typealias Store = @Sendable ([Claim]) async throws -> Void

    /// The most claims of a transaction: its locks are held for milliseconds.
    static let mostClaims = 128
    static let mostTransactions = 4

    private let store: Store
    private var waiting: [Waiting] = []
    private var transactions = 0

    private struct Waiting {
        let claim: Claim
        let answer: CheckedContinuation<Void, any Error>
    }

    init(_ store: @escaping Store) {
        self.store = store
    }

    /// How many claims no transaction has taken yet.
    var backlog: Int { waiting.count }

    /// Returns when the claim is committed.
    ///
    /// - Throws: what the store threw for this claim. Another's refusal is never anybody else's.
    func register(_ claim: Claim) async throws {
        try await withCheckedThrowingContinuation { answer in
            waiting.append(Waiting(claim: claim, answer: answer))
            guard transactions < Self.mostTransactions else { return }
            transactions += 1
            Task { await storeWaiting() }
        }
    }

    private func storeWaiting() async {
        while !waiting.isEmpty {
            let company = Array(waiting.prefix(Self.mostClaims))
            waiting.removeFirst(company.count)
            await commit(company)
        }
        transactions -= 1
    }

    private func commit(_ company: [Waiting]) async {
        do {
            try await store(company.map(\.claim))
            for one in company { one.answer.resume() }
        } catch {
            // Whose claim it was is not known of a transaction; of one with a single claim it is.
            guard company.count > 1, (error as? PostgresError).map({ $0.isOutage || $0.isTimeout }) != true else {
                for one in company { one.answer.resume(throwing: error) }
                return
            }
            for one in company { await commit([one]) }
        }
    }
}
