package import FoundationEssentials
package import HTTPSFetch
package import Logging
import PushProtocol
package import ServiceKit

/// Verifies bearer tokens against the keys of every configured app; the key that fits and what the token says decide the
/// app.
package struct BearerVerifier: Sendable {
    /// What an app demands of tokens that a ring's keys signed.
    private struct Demand: Sendable {
        let app: AppID
        let verification: BearerVerification
    }

    /// Apps that trust the same source share its keys.
    private struct Trust: Sendable {
        let ring: KeyRing
        var demands: [Demand]
    }

    private let trusts: [Trust]
    private let longest: Duration
    private let now: @Sendable () -> Date

    /// How long a token may be valid where the configuration does not say.
    package static let usualLongest = Duration.seconds(30 * 86_400)

    /// Reads all keys. A file that is of no use, and a URL that never can be, stop the start; a URL that is away does not.
    package init(
        _ catalog: AppCatalog,
        fetch: HTTPSFetch = BearerVerifier.fetch(), longest: Duration = usualLongest,
        now: @escaping @Sendable () -> Date = { Date() },
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger
    ) async throws(ConfigurationError) {
        var trusts: [Trust] = []
        for app in catalog.apps {
            for verification in app.bearer {
                let demand = Demand(app: app.id, verification: verification)
                let known = trusts.firstIndex {
                    $0.ring.source == verification.keys && $0.ring.algorithm == verification.algorithm
                }
                if let known {
                    trusts[known].demands.append(demand)
                    continue
                }
                let ring = KeyRing(
                    verification.algorithm, from: verification.keys, fetch: fetch, uptime: uptime, logger: logger)
                await ring.refresh()
                if let trouble = await ring.trouble, !verification.keys.mayHeal(trouble) {
                    throw ConfigurationError("apps.\(app.id).bearer: \(verification.keys.name): \(trouble)")
                }
                trusts.append(Trust(ring: ring, demands: [demand]))
            }
        }
        self.trusts = trusts
        self.longest = longest
        self.now = now
    }

    /// What key sets are fetched with.
    ///
    /// - Parameter caFile: PEM certificates to trust instead of the system's.
    package static func fetch(caFile: String? = nil) -> HTTPSFetch {
        HTTPSFetch(
            caFile: caFile, connectTimeout: .seconds(2), timeout: .seconds(5), maximumResponseSize: 256 << 10)
    }

    /// All sources of keys.
    package var rings: [KeyRing] { trusts.map(\.ring) }

    /// The caller a token speaks for. With several keys the most telling refusal is given.
    package func verify(_ text: String) async throws(BearerRefusal) -> Caller {
        let token = try SignedToken(text)
        var signers: [Trust] = []
        var lacking: [Trust] = []
        for trust in trusts where trust.ring.algorithm.rawValue == token.algorithm {
            // One look for both: a key that came between two of them would be neither tried nor missing.
            let keys = await trust.ring.keys
            if keys.haveSigned(token) {
                signers.append(trust)
            } else if keys.lack(token.keyID) {
                lacking.append(trust)
            }
        }
        if !signers.isEmpty { return try caller(token, signers) }
        // A key may be new.
        // All at once: with several sources away a request waits for one time-out, not for their sum.
        await withTaskGroup(of: Void.self) { group in
            for trust in lacking { group.addTask { await trust.ring.refresh() } }
        }
        // Looked at in any case: another's reading may have ended since the first look.
        for trust in lacking where await trust.ring.keys.haveSigned(token) { signers.append(trust) }
        if !signers.isEmpty { return try caller(token, signers) }
        for trust in lacking where await trust.ring.trouble != nil { throw BearerRefusal(.keysAway) }
        throw BearerRefusal(.untrusted)
    }

    private func caller(_ token: SignedToken, _ signers: [Trust]) throws(BearerRefusal) -> Caller {
        let claims = try token.claims()
        let now = now()
        var callers: [Caller] = []
        var refusals: [BearerRefusal] = []
        for demand in signers.flatMap(\.demands) {
            do throws(BearerRefusal) {
                callers.append(try demand.verification.caller(of: demand.app, from: claims, now: now, longest: longest))
            } catch {
                refusals.append(error)
            }
        }
        guard let caller = callers.first else {
            throw refusals.max { $0.reason.rank < $1.reason.rank } ?? BearerRefusal(.untrusted)
        }
        // Nothing may cross from one app into another for want of a word in the configuration.
        guard callers.allSatisfy({ $0 == caller }) else { throw BearerRefusal(.severalApps) }
        return caller
    }
}

extension [VerificationKey] {
    /// Whether one of those that a token may be signed with has signed it.
    fileprivate func haveSigned(_ token: SignedToken) -> Bool {
        contains { (token.keyID == nil || $0.id == nil || $0.id == token.keyID) && $0.hasSigned(token) }
    }

    /// Whether the key that a token names may be one that came to the source since. Of a token that names none, any may be.
    fileprivate func lack(_ keyID: String?) -> Bool { keyID == nil || !contains { $0.id == keyID } }
}

extension BearerVerification.Keys {
    /// Whether what is wrong may be mended elsewhere than in the configuration of this deployment.
    fileprivate func mayHeal(_ trouble: any Error) -> Bool {
        switch self {
        case .file: false
        case .url: (trouble as? FetchError).map { $0.isRetriable || $0.code == .responseTooLarge } ?? true
        }
    }
}
