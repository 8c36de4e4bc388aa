package import Logging
internal import Synchronization

/// Collects log lines for assertions.
package final class CapturingLogger: Sendable {
    package struct Line: Sendable {
        package let level: Logger.Level
        package let message: String
        package let metadata: Logger.Metadata
    }

    private let kept = Mutex<[Line]>([])

    package init() {}

    package var lines: [Line] { kept.withLock { $0 } }

    /// A logger at level `trace` that writes here.
    package var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(owner: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let owner: CapturingLogger
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let line = Line(
                level: event.level, message: event.message.description,
                metadata: metadata.merging(event.metadata ?? [:]) { $1 })
            owner.kept.withLock { $0.append(line) }
        }
    }
}
