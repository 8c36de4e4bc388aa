package import Logging

extension Logger {
    /// One that nobody hears.
    package static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
