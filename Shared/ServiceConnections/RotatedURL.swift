import Logging
import ServiceKit
import Synchronization

/// A URL with a login in a file that may change while the process runs.
///
/// If the file is missing, empty, malformed, or lacks the required TLS, the previous URL stays in use; logs one warning
/// for each fault. The log never contains the URL.
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

    init(_ key: ConfigurationKey, file path: String, url: String, allowsPlaintext: Bool, logger: Logger) {
        self.key = key
        self.path = path
        self.allowsPlaintext = allowsPlaintext
        self.logger = logger
        state = Mutex(State(url: url))
    }

    /// Returns the file's current URL, or the last valid one. Reads the file and may block.
    func current() -> String {
        let found = SettingValue.secret(inFile: path)
        let fault = found.map(fault) ?? "it is not a readable file with the secret"
        let (url, isDue) = state.withLock { state in
            let isDue = fault != state.fault || (fault == nil && found != state.url)
            state.fault = fault
            if let found, fault == nil { state.url = found }
            return (state.url, isDue)
        }
        if isDue { report(fault) }
        return url
    }

    private func fault(of url: String) -> String? {
        if let problem = SettingValue.check(url, for: key) { return problem }
        return key.check?(url, [ConfigurationKey.allowPlaintext.name: allowsPlaintext ? "yes" : "no"])
    }

    private func report(_ fault: String?) {
        guard let fault else {
            logger.notice("\(key.fileName) has changed; new connections use the new URL")
            return
        }
        logger.warning(
            "\(key.fileName) is invalid; the previous URL stays in use",
            metadata: [LogKey.reason: "\(fault)"])
    }
}

extension Settings {
    /// Returns a closure that reads the URL before each connection attempt; `nil` if the URL is not set as `NAME_FILE`.
    func rotation(of key: ConfigurationKey, logger: Logger) throws(ConfigurationError) -> (@Sendable () -> String?)? {
        guard let path = secretFile(of: key) else { return nil }
        let rotated = RotatedURL(
            key, file: path, url: try string(key), allowsPlaintext: try boolean(.allowPlaintext), logger: logger)
        return { rotated.current() }
    }
}
