import PushProtocol
import Synchronization

/// Tokens pinned to an environment, topic or project. An unpinned token is valid everywhere, so that tests need no
/// setup. Safe from any thread.
final class PinnedTokens: Sendable {
    /// A device token pinned to an environment, a topic with its suffix (`<bundle>.voip`), or both.
    struct APNs: Hashable, Sendable {
        let environment: ProviderEnvironment?
        let topic: String?
    }

    struct FCM: Hashable, Sendable {
        let project: String
        /// Whether the `fid` member answers `UNREGISTERED` for it (firebase-ios-sdk #16429).
        var isTokenOnly = false
        /// When the FID becomes usable, after its registration succeeded (firebase-ios-sdk #16638).
        var fidUnregisteredUntil: Timestamp?

        /// Whether a message may address it in the member `field`.
        func isKnown(in field: String, at now: Timestamp) -> Bool {
            guard field == "fid" else { return true }
            return !isTokenOnly && fidUnregisteredUntil.map { now >= $0 } ?? true
        }
    }

    private struct State {
        var apns: [String: APNs] = [:]
        var fcm: [String: FCM] = [:]
    }

    private let state = Mutex(State())

    func apns(_ token: String) -> APNs? { state.withLock { $0.apns[token] } }
    func fcm(_ token: String) -> FCM? { state.withLock { $0.fcm[token] } }

    func register(_ token: String, _ registration: APNs) { state.withLock { $0.apns[token] = registration } }
    func register(_ token: String, _ registration: FCM) { state.withLock { $0.fcm[token] = registration } }

    func removeAll() { state.withLock { $0 = State() } }
}
