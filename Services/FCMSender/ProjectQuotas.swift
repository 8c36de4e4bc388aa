import Logging
import PushProtocol
import PushSending
import Synchronization

/// The quota of every project that this process sends to: one each, however many accounts of the project there are
/// (`push-protocols` B.5). Which project an account is of is known once its file has been read.
final class ProjectQuotas: Sendable {
    /// One project's quota, and the apps that spend it.
    struct Share: Sendable {
        let quota: QuotaGate
        fileprivate(set) var apps: [AppID] = []
        /// The least that an app's entry says, in messages a minute.
        fileprivate var told: Int?
    }

    private let perMinute: Int
    private let clock: SenderClock
    private let logger: Logger
    private let shares = Mutex<[String: Share]>([:])

    /// - Parameter perMinute: what a project has of which no app's entry says it.
    init(perMinute: Int, clock: SenderClock, logger: Logger) {
        self.perMinute = perMinute
        self.clock = clock
        self.logger = logger
    }

    var all: [Share] { shares.withLock { Array($0.values) } }

    /// The quota of `project`, which `apps` spend from now on; `told` is the least that their entries say.
    func join(_ project: String, apps: [AppID], told: Int?) -> QuotaGate {
        shares.withLock { shares in
            var share =
                shares[project]
                ?? Share(
                    quota: QuotaGate(project, provider: .fcm, perMinute: perMinute, clock: clock, logger: logger))
            share.apps += apps
            share.told = [share.told, told].compactMap { $0 }.min()
            if let told = share.told { share.quota.allow(perMinute: told) }
            shares[project] = share
            return share.quota
        }
    }
}
