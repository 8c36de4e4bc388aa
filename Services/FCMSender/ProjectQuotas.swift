import Logging
import PushProtocol
import PushSending
import Synchronization

/// The quotas of all projects that this process sends to. Accounts of one project share its quota (Firebase: FCM
/// throttling and quotas). An account's project is known after its file is read.
final class ProjectQuotas: Sendable {
    /// A project's quota and the apps that use it.
    struct ProjectQuota: Sendable {
        let quota: QuotaLimiter
        fileprivate(set) var apps: [AppID] = []
        /// The lowest `messages-per-minute` of the project's apps.
        fileprivate var configuredPerMinute: Int?
    }

    private let perMinute: Int
    private let clock: SenderClock
    private let logger: Logger
    private let projects = Mutex<[String: ProjectQuota]>([:])

    /// - Parameter perMinute: the quota of projects for which no app configures one.
    init(perMinute: Int, clock: SenderClock, logger: Logger) {
        self.perMinute = perMinute
        self.clock = clock
        self.logger = logger
    }

    var all: [ProjectQuota] { projects.withLock { Array($0.values) } }

    /// Returns the quota of `project` and adds `apps` to its users. `configuredPerMinute` is the lowest value that
    /// these apps configure.
    func join(_ project: String, apps: [AppID], configuredPerMinute: Int?) -> QuotaLimiter {
        projects.withLock { projects in
            var share =
                projects[project]
                ?? ProjectQuota(
                    quota: QuotaLimiter(project, provider: .fcm, perMinute: perMinute, clock: clock, logger: logger))
            share.apps += apps
            share.configuredPerMinute = [share.configuredPerMinute, configuredPerMinute].compactMap { $0 }.min()
            if let perMinute = share.configuredPerMinute { share.quota.setLimit(perMinute: perMinute) }
            projects[project] = share
            return share.quota
        }
    }
}
