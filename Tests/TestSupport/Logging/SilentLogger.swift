package import Logging

extension Logger {
    /// A logger without output.
    package static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
