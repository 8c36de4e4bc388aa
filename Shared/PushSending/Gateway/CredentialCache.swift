import Synchronization

/// One credential for all who send with it: minted when first needed, by one task at a time, renewed before it ends.
///
/// While a renewal runs, the old credential goes on serving as long as it is usable. After a failed minting the next
/// one waits, doubling from one second to a minute; who asks meanwhile gets the last error at once.
///
/// Ages are measured in uptime, which no correction of the clock changes. A credential that carries the time of day is
/// also compared with the clock each time it is asked for. One that was minted under a wrong clock is replaced, once in
/// ``pauseOfCorrections`` at most, since a provider limits how many a key may sign.
package final class CredentialCache: CredentialSource {
    package typealias Mint = @Sendable () async throws(CredentialError) -> MintedCredential
    private typealias Minting = Task<Result<Credential, CredentialError>, Never>

    /// The least time between two mintings because of the clock. APNs takes one token of a key in twenty minutes
    /// (`push-protocols` A.8).
    package static let pauseOfCorrections = Duration.seconds(20 * 60)

    private struct State {
        /// The uptime of the last minting because of the clock.
        var corrected: Duration?
        var current: (credential: Credential, minted: MintedCredential)?
        var minting: Minting?
        var generation = 0
        /// Counts what credentials are minted from; see ``renew()``.
        var source = 0
        var failure: (error: CredentialError, count: Int, until: Duration)?
    }

    private enum Plan {
        case serve(Credential)
        case fail(CredentialError)
        case wait(Minting)
    }

    private let clock: SenderClock
    private let mint: Mint
    private let state = Mutex(State())

    /// `mint` is called by one task at a time, but for a renewal that does not wait for one under way.
    package init(clock: SenderClock, mint: @escaping Mint) {
        self.clock = clock
        self.mint = mint
    }

    package func current() async throws(CredentialError) -> Credential {
        try await carryOut(state.withLock { state in plan(&state, refused: nil) })
    }

    package func replacing(_ refused: Credential) async throws(CredentialError) -> Credential {
        try await carryOut(state.withLock { state in plan(&state, refused: refused) })
    }

    /// Whether one is being minted.
    package var isMinting: Bool { state.withLock { $0.minting != nil } }

    /// Forgets the credential, and whatever failed: what it is minted from has changed. What is being minted now serves
    /// those who wait for it, and nobody after them.
    package func renew() {
        state.withLock { state in
            state.source += 1
            (state.current, state.minting, state.failure) = (nil, nil, nil)
        }
    }

    private func carryOut(_ plan: Plan) async throws(CredentialError) -> Credential {
        switch plan {
        case .serve(let credential): return credential
        case .fail(let error): throw error
        case .wait(let minting): return try await minting.value.get()
        }
    }

    private func plan(_ state: inout State, refused: Credential?) -> Plan {
        let now = clock.uptime()
        if isMisdated(state, now: now) {
            state.corrected = now
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

    private func isMisdated(_ state: State, now: Duration) -> Bool {
        guard let minted = state.current?.minted, minted.isMisdated(at: clock.now()) else { return false }
        return state.corrected.map { now - $0 >= Self.pauseOfCorrections } ?? true
    }

    /// Starts a minting unless one runs or the last one failed too recently.
    ///
    /// The task is not a child of who asked first: the others wait for it too when that one is cancelled.
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
                let pause = min(Duration.seconds(1 << min(count - 1, 6)), .seconds(60))
                state.failure = (error, count, now + pause)
                return .failure(error)
            }
        }
    }
}
