import FoundationEssentials
import Logging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Takes rule files up when they change. Files with a mistake are refused, and so are files that lack the rules of an app
/// which had some and is still configured. Every reason is logged, and the rules from before stay in force. Runs until
/// graceful shutdown.
final class RuleReloader: Service {
    /// How often it looks.
    static let pace = Duration.seconds(2)

    private let directory: String
    private let currentRules: CurrentRules
    /// The apps of `HELIOGRAPH_APPS`.
    private let apps: Set<AppID>
    private let condition: Readiness.Condition?
    private let logger: Logger
    /// The text of all files when it looked last; `nil` when they could not be read.
    private let seen: Mutex<[String: Data?]?>

    /// - Parameters:
    ///   - apps: those that are configured: none of them may lose its rules.
    ///   - condition: a condition of readiness, degraded as long as files are refused.
    init(
        directory: String, currentRules: CurrentRules, apps: Set<AppID>, condition: Readiness.Condition? = nil,
        logger: Logger
    ) {
        self.directory = directory
        self.currentRules = currentRules
        self.apps = apps
        self.condition = condition
        self.logger = logger
        seen = Mutex(RuleDirectory.texts(directory))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            self.tell(isRefused: false)
            while (try? await Task.sleep(for: Self.pace)) != nil { self.look() }
        }
    }

    /// Reads the files again if they are not what they were.
    func look() {
        let texts = RuleDirectory.texts(directory)
        let isNews = seen.withLock { seen in
            if seen == texts { return false }
            seen = texts
            return true
        }
        guard isNews else { return }
        do throws(RuleFileError) {
            let ruleSets = try RuleDirectory.load(directory)
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
                    "Rules taken",
                    metadata: [
                        LogKey.app: "\(ruleSet.app)", LogKey.version: "\(ruleSet.version)",
                        LogKey.count: "\(ruleSet.rules.count)",
                    ])
            }
            for app in before.ruleSets.keys where ruleSets.ruleSets[app] == nil {
                logger.warning("An app has no rules any more", metadata: [LogKey.app: "\(app)"])
            }
        } catch {
            tell(isRefused: true)
            for problem in error.problems {
                logger.error(
                    "The rule files have changed and are refused; the rules from before stay in force",
                    metadata: [LogKey.error: "\(directory)/\(problem)"])
            }
        }
    }

    /// | name | kind | labels | counts |
    /// |---|---|---|---|
    /// | `heliograph_rules_files_refused` | gauge | | 1 as long as the rule files are not those in force, because of a mistake in them or because an app would lose its rules |
    private func tell(isRefused: Bool) {
        condition?.set(isRefused ? .degraded("the rule files are refused; those from before stay in force") : .holds)
        Gauge(label: "heliograph_rules_files_refused").record(isRefused ? 1 : 0)
    }
}
