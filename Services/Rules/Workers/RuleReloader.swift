import FoundationEssentials
import Logging
import Metrics
import PushProtocol
import RuleLanguage
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Reloads the rule files when they change.
///
/// Refuses all files if one has a mistake, or if a configured app would lose its rules. Logs every reason; the previous
/// rules stay in force. Runs until graceful shutdown.
final class RuleReloader: Service {
    /// The polling interval.
    static let pace = Duration.seconds(2)

    private let directory: String
    private let currentRules: CurrentRules
    private let apps: ActiveApps
    private let condition: Readiness.Condition?
    private let logger: Logger
    /// The last poll. Its lock is held for a whole poll, so that a later poll never ends before an earlier one.
    private let last: Mutex<Poll>

    private struct Poll {
        /// The text of all files; `nil` if they could not be read.
        var texts: [String: Data?]?
        var isRefused = false
    }

    /// - Parameters:
    ///   - apps: the apps in service: none of them may lose its rules.
    ///   - condition: a readiness condition, degraded while files are refused.
    init(
        directory: String, currentRules: CurrentRules, apps: ActiveApps, condition: Readiness.Condition? = nil,
        logger: Logger
    ) {
        self.directory = directory
        self.currentRules = currentRules
        self.apps = apps
        self.condition = condition
        self.logger = logger
        last = Mutex(Poll(texts: RuleDirectory.texts(directory)))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            self.tell(isRefused: false)
            while (try? await Task.sleep(for: Self.pace)) != nil { self.look() }
        }
    }

    /// Loads the files if they have changed.
    ///
    /// - Parameter again: whether to load refused files again, because a new app may allow them.
    /// - Returns: whether the present files are in force. If not, they are refused.
    @discardableResult func look(againIfRefused again: Bool = false) -> Bool {
        last.withLock { last in
            let texts = RuleDirectory.texts(directory)
            if last.texts != texts || again && last.isRefused {
                last.texts = texts
                last.isRefused = !load()
            }
            return !last.isRefused
        }
    }

    /// Puts the files in force, or logs why they are refused.
    private func load() -> Bool {
        do throws(RuleFileError) {
            let ruleSets = try RuleDirectory.load(
                directory, isConfigured: { [apps] in apps.contains($0) },
                isShared: { apps.sharesEvents(of: $0, with: $1) })
            let before = currentRules.ruleSets
            let lost = before.ruleSets.keys.filter { ruleSets.ruleSets[$0] == nil && apps.contains($0) }.sorted()
            guard lost.isEmpty else {
                throw RuleFileError(
                    problems: lost.map { app in
                        RuleProblem(
                            file: "\(app).yaml", line: 1, key: "",
                            problem:
                                "the file is gone, and \(app) is still in HELIOGRAPH_APPS; put it back, or take the "
                                + "app out of HELIOGRAPH_APPS and restart")
                    })
            }
            currentRules.put(ruleSets)
            tell(isRefused: false)
            for ruleSet in ruleSets.ruleSets.values where before.ruleSets[ruleSet.app]?.version != ruleSet.version {
                logger.info(
                    "Rules loaded",
                    metadata: [
                        LogKey.app: "\(ruleSet.app)", LogKey.version: "\(ruleSet.version)",
                        LogKey.count: "\(ruleSet.rules.count)",
                    ])
            }
            for app in before.ruleSets.keys where ruleSets.ruleSets[app] == nil {
                logger.warning("Rules of an app were removed", metadata: [LogKey.app: "\(app)"])
            }
            return true
        } catch {
            tell(isRefused: true)
            for problem in error.problems {
                logger.error(
                    "Changed rule files are refused; the previous rules stay in force",
                    metadata: [LogKey.error: "\(directory)/\(problem)"])
            }
            return false
        }
    }

    private func tell(isRefused: Bool) {
        condition?.set(isRefused ? .degraded("rule files are refused; the previous rules stay in force") : .holds)
        Gauge(label: "heliograph_rules_files_refused").record(isRefused ? 1 : 0)
    }
}
