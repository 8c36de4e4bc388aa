import PushProtocol
import Synchronization

/// What the simulator was told about tokens through its control port. A token nobody told it about is good everywhere,
/// so that a test needs no preparation. Safe from any thread.
final class Registrations: Sendable {
    /// A device token that exists in one environment, or for one topic (its kind included: `<bundle>.voip`), or both.
    struct APNs: Hashable, Sendable {
        let environment: ProviderEnvironment?
        let topic: String?
    }

    /// A registration token of one project.
    struct FCM: Hashable, Sendable {
        let project: String
        /// Whether it is a registration token alone: as a FID it is unregistered (firebase-ios-sdk #16429).
        var isTokenOnly = false
        /// When it becomes known as a FID, although its registration succeeded before (firebase-ios-sdk #16638).
        var fidUnregisteredUntil: Timestamp?

        /// Whether the address is known in the member `field` of a message.
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
