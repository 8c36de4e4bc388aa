import Primitives
import Synchronization

/// Caches one credential: mints it on first use, by one task at a time, and renews it before it expires.
///
/// The old credential stays in use during a renewal, as long as it is usable. After a failed minting the next one
/// waits, with a backoff from one second to a minute. Meanwhile callers get the last error at once.
///
/// Measures ages in uptime, which clock corrections do not change. Also compares the issue time with the clock on each
/// access, and replaces a credential that was minted under a wrong clock. Does so at most once in
/// ``minIntervalBetweenClockCorrections``, because providers limit the tokens of a key.
package final class CredentialCache: CredentialSource {
    package typealias Mint = @Sendable () async throws(CredentialError) -> MintedCredential
    private typealias MintingTask = Task<Result<Credential, CredentialError>, Never>

    /// The minimum time between two mintings for a corrected clock.
    ///
    /// APNs accepts one new token of a key in 20 minutes (Apple: Establishing a token-based connection to APNs).
    package static let minIntervalBetweenClockCorrections = Duration.seconds(20 * 60)

    private struct State {
        /// The uptime of the last minting for a corrected clock.
        var correctedAt: Duration?
        var current: (credential: Credential, minted: MintedCredential)?
        var minting: MintingTask?
        var generation = 0
        /// The number of the key or account that credentials are minted from; see ``renew()``.
        var source = 0
        var failure: (error: CredentialError, count: Int, until: Duration)?
    }

    private enum Plan {
        case serve(Credential)
        case fail(CredentialError)
        case wait(MintingTask)
    }

    private let clock: SenderClock
    private let mint: Mint
    private let state = Mutex(State())

    /// - Parameter mint: mints a credential. Called by one task at a time, except right after ``renew()``.
    package init(clock: SenderClock, mint: @escaping Mint) {
        self.clock = clock
        self.mint = mint
    }

    package func current() async throws(CredentialError) -> Credential {
        try await execute(state.withLock { state in plan(&state, refused: nil) })
    }

    package func replacing(_ refused: Credential) async throws(CredentialError) -> Credential {
        try await execute(state.withLock { state in plan(&state, refused: refused) })
    }

    package var isMinting: Bool { state.withLock { $0.minting != nil } }

    /// Discards the credential and the last error, after a change of the key or account.
    ///
    /// A credential that is being minted goes to the tasks that wait for it, but is not cached.
    package func renew() {
        state.withLock { state in
            state.source += 1
            (state.current, state.minting, state.failure) = (nil, nil, nil)
        }
    }

    private func execute(_ plan: Plan) async throws(CredentialError) -> Credential {
        switch plan {
        case .serve(let credential): return credential
        case .fail(let error): throw error
        case .wait(let minting): return try await minting.value.get()
        }
    }

    private func plan(_ state: inout State, refused: Credential?) -> Plan {
        let now = clock.uptime()
        if isIssueTimeInvalid(state, now: now) {
            state.correctedAt = now
            state.current = nil
        } else if let (credential, minted) = state.current, credential.generation != refused?.generation {
            let age = now - credential.mintedAt
            if age >= minted.renewAfter { startMinting(&state, now: now) }
            if age < minted.usableFor { return .serve(credential) }
        } else {
            state.current = nil
        }
        startMinting(&state, now: now)
        if let minting = state.minting { return .wait(minting) }
        return .fail(state.failure?.error ?? .unavailable(reason: "no-credential"))
    }

    private func isIssueTimeInvalid(_ state: State, now: Duration) -> Bool {
        guard let minted = state.current?.minted, minted.isIssueTimeInvalid(at: clock.now()) else { return false }
        return state.correctedAt.map { now - $0 >= Self.minIntervalBetweenClockCorrections } ?? true
    }

    /// Starts a minting, unless one is in flight or the last one failed too recently.
    ///
    /// Uses an unstructured task, so that cancelling one caller does not fail the others.
    private func startMinting(_ state: inout State, now: Duration) {
        guard state.minting == nil, state.failure.map({ now >= $0.until }) ?? true else { return }
        let source = state.source
        state.minting = Task { await self.finishMinting(source) }
    }

    private func finishMinting(_ source: Int) async -> Result<Credential, CredentialError> {
        let result: Result<MintedCredential, CredentialError>
        do { result = .success(try await mint()) } catch { result = .failure(error) }
        let now = clock.uptime()
        return state.withLock { state in
            let isCurrent = state.source == source
            if isCurrent { state.minting = nil }
            switch result {
            case .success(let minted):
                state.generation += 1
                let credential = Credential(
                    authorization: minted.authorization, generation: state.generation, mintedAt: now)
                guard isCurrent else { return .success(credential) }
                state.current = (credential, minted)
                state.failure = nil
                return .success(credential)
            case .failure(let error):
                guard isCurrent else { return .failure(error) }
                let count = (state.failure?.count ?? 0) + 1
                let pause = Backoff(base: .seconds(1), cap: .seconds(60)).ceiling(afterFailures: count)
                state.failure = (error, count, now + pause)
                return .failure(error)
            }
        }
    }
}
