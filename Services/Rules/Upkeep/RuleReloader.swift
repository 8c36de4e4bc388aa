import FoundationEssentials
import Logging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Takes rule files up when they change. Files with a mistake are refused, every mistake is told, and what was in force
/// stays so. Runs until graceful shutdown.
final class RuleReloader: Service {
    /// How often it looks.
    static let pace = Duration.seconds(2)

    private let directory: String
    private let shelf: RuleShelf
    private let logger: Logger
    /// The text of all files when it looked last; `nil` when they could not be read.
    private let seen: Mutex<[String: Data?]?>

    init(directory: String, shelf: RuleShelf, logger: Logger) {
        self.directory = directory
        self.shelf = shelf
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
        do {
            let book = try RuleDirectory.load(directory)
            let before = shelf.book
            shelf.put(book)
            tell(isRefused: false)
            for ruleSet in book.ruleSets.values where before.ruleSets[ruleSet.app]?.version != ruleSet.version {
                logger.info(
                    "Rules taken",
                    metadata: [
                        LogKey.app: "\(ruleSet.app)", LogKey.version: "\(ruleSet.version)",
                        LogKey.count: "\(ruleSet.rules.count)",
                    ])
            }
            for app in before.ruleSets.keys where book.ruleSets[app] == nil {
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
    /// | `heliograph_rules_files_refused` | gauge | | 1 as long as the rule files are not those in force, because of a mistake in them |
    private func tell(isRefused: Bool) {
        Gauge(label: "heliograph_rules_files_refused").record(isRefused ? 1 : 0)
    }
}
