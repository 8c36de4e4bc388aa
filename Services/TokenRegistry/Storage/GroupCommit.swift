import FoundationEssentials
import Postgres
import PushProtocol

/// Stores what many clients register at once in few transactions. Claims that arrive during a transaction are stored
/// together in the next one, so that many share one commit to disk. The first claim starts a transaction at once.
///
/// Several transactions run beside each other, so that one which waits for a lock delays its own claims only. The number of
/// claims that wait is bounded: beyond it a caller is refused at once.
actor GroupCommit {
    /// Stores claims in one transaction.
    ///
    /// - Returns: the devices that their user did not have before.
    typealias Store = @Sendable ([RegistrationRequest]) async throws -> Set<UUID>

    /// The most claims of a transaction: its locks are held for milliseconds.
    static let mostClaims = 128
    static let mostTransactions = 4
    /// The most claims that may wait. Four transactions of 128 claims in 10 ms store these in about 80 ms.
    static let usualMostWaiting = 4096
    /// How many statements of one company may time out before the rest of the company is refused.
    static let mostTimeouts = 8

    /// No more claims may wait.
    struct Full: Error {}

    private let store: Store
    private let mostWaiting: Int
    private var waiting: [Waiting] = []
    private var transactions = 0

    private struct Waiting {
        let claim: RegistrationRequest
        let answer: CheckedContinuation<Bool, any Error>
    }

    init(mostWaiting: Int = usualMostWaiting, _ store: @escaping Store) {
        self.mostWaiting = mostWaiting
        self.store = store
    }

    /// How many claims no transaction has taken yet.
    var backlog: Int { waiting.count }

    /// Returns when the claim is committed.
    ///
    /// - Returns: whether its user did not have the device before.
    /// - Throws: ``Full``, or the error of the store for this claim. An error of another claim is never this one's.
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
            let company = Array(waiting.prefix(Self.mostClaims))
            waiting.removeFirst(company.count)
            var timeouts = 0
            await commit(company, &timeouts)
        }
        transactions -= 1
    }

    private func commit(_ company: [Waiting], _ timeouts: inout Int) async {
        do {
            let arrived = try await store(company.map(\.claim))
            for one in company { one.answer.resume(returning: arrived.contains(one.claim.device)) }
        } catch {
            let failure = error as? PostgresError
            if failure?.isTimeout == true {
                timeouts += 1
                guard company.count > 1, timeouts < Self.mostTimeouts else { return fail(company, error) }
                // One claim may wait for a lock or take too long: the others must not fail with it.
                let middle = company.count / 2
                await commit(Array(company[..<middle]), &timeouts)
                await commit(Array(company[middle...]), &timeouts)
            } else if failure?.isOutage == true {
                // Every claim that waits would only fail later.
                let everyone = waiting
                waiting = []
                fail(company + everyone, error)
            } else if company.count == 1 {
                fail(company, error)
            } else {
                // An error of a transaction names no claim; an error of a single claim does.
                for one in company { await commit([one], &timeouts) }
            }
        }
    }

    private func fail(_ company: [Waiting], _ error: any Error) {
        for one in company { one.answer.resume(throwing: error) }
    }
}
