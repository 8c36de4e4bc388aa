import FoundationEssentials
import Logging
import ServiceLifecycle

/// Reads the log level from a file, and again every five seconds. Runs until graceful shutdown.
///
/// The file holds one word, such as `debug`. A missing file or another word leaves the level as it is, and logs a warning.
struct LogLevelFile: Service {
    /// The file's content is no level.
    struct InvalidLevel: Error, CustomStringConvertible {
        let description: String
    }

    static let interval: Duration = .seconds(5)

    let path: String
    let current: CurrentLogLevel
    let logger: Logger

    func run() async throws {
        let task = PeriodicTask(
            every: Self.interval, failureMessage: "LOG_LEVEL_FILE is invalid; the log level stays as it is",
            recoveryMessage: "LOG_LEVEL_FILE is valid again", logger: logger)
        await task.run { try update() }
    }

    /// Reads the file once.
    ///
    /// - Throws: ``InvalidLevel``, and errors of the file system.
    func update() throws {
        let text = try String(contentsOfFile: path, encoding: .utf8).trimmed
        guard let level = Logger.Level(rawValue: text) else {
            let words = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw InvalidLevel(description: "\(path) must hold one of: \(words)")
        }
        guard level != current.level else { return }
        current.level = level
        // At a level that is logged in any case.
        logger.log(level: max(level, .notice), "The log level is now \(level)")
    }
}
