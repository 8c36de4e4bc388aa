import Logging
import Synchronization

/// An address with a login that stands in a file and may change while the process runs.
///
/// A file that is away, empty, malformed or of another kind of transport leaves the earlier address in force: a warning
/// says so, once for each fault. No line holds the address.
final class RotatedURL: Sendable {
    private struct State {
        var url: String
        var fault: String?
    }

    private let key: ConfigurationKey
    private let path: String
    private let allowsPlaintext: Bool
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter url: The address that the process started with.
    init(_ key: ConfigurationKey, file path: String, url: String, allowsPlaintext: Bool, logger: Logger) {
        self.key = key
        self.path = path
        self.allowsPlaintext = allowsPlaintext
        self.logger = logger
        state = Mutex(State(url: url))
    }

    /// The address as the file has it now, or the last one that could be used. Reads the file: for threads that may block.
    func current() -> String {
        let found = SettingValue.secret(inFile: path)
        let fault = found.map(fault) ?? "it is not a readable file with the secret in it"
        let (url, news) = state.withLock { state in
            let isNews = fault != state.fault || (fault == nil && found != state.url)
            state.fault = fault
            if let found, fault == nil { state.url = found }
            return (state.url, isNews)
        }
        if news { tell(fault) }
        return url
    }

    private func fault(of url: String) -> String? {
        if let problem = SettingValue.check(url, for: key) { return problem }
        return allowsPlaintext ? nil : TransportSecurity.problem(with: url, for: key)
    }

    private func tell(_ fault: String?) {
        guard let fault else {
            logger.notice("\(key.fileName) has a new address or login; the next connection uses it")
            return
        }
        logger.warning(
            "\(key.fileName) cannot be used; the earlier address and login stay in force",
            metadata: [LogKey.reason: "\(fault)"])
    }
}

extension Settings {
    /// Reads the address before each try of a connection; `nil` when the address came from a variable.
    ///
    /// - Parameter key: ``ConfigurationKey/amqpURL`` or ``ConfigurationKey/databaseURL``.
    func rotation(of key: ConfigurationKey, logger: Logger) throws(ConfigurationError) -> (@Sendable () -> String?)? {
        guard let path = secretFile(of: key) else { return nil }
        let rotated = RotatedURL(
            key, file: path, url: try string(key), allowsPlaintext: try boolean(.allowPlaintext), logger: logger)
        return { rotated.current() }
    }
}
