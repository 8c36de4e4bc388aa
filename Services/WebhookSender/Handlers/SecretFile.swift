import FoundationEssentials
import Logging
import PushProtocol
import ServiceKit
import Synchronization

/// The secrets of a webhook, from a file that is read again at most once a second. So a new secret is used without a
/// restart.
///
/// If the file becomes invalid, the former secrets stay in use, and the log has one warning.
final class SecretFile: Sendable {
    private struct State {
        var secrets: [WebhookSecret]
        var read: ContinuousClock.Instant
        var isFaulty = false
    }

    private let path: String
    private let logger: Logger
    private let state: Mutex<State>

    init(_ path: String, logger: Logger) throws(ConfigurationError) {
        guard let secrets = Self.read(path) else {
            throw ConfigurationError(
                "\(path): \(WebhookSecret.rule), one a line, at most \(WebhookSecret.maximumCount)")
        }
        self.path = path
        self.logger = logger
        state = Mutex(State(secrets: secrets, read: .now))
    }

    func current() -> [WebhookSecret] {
        state.withLock { state in
            guard state.read.duration(to: .now) >= .seconds(1) else { return state.secrets }
            state.read = .now
            if let secrets = Self.read(path) {
                (state.secrets, state.isFaulty) = (secrets, false)
            } else if !state.isFaulty {
                state.isFaulty = true
                logger.warning(
                    "Secrets of a webhook are unreadable; using the former ones", metadata: [LogKey.path: "\(path)"])
            }
            return state.secrets
        }
    }

    private static func read(_ path: String) -> [WebhookSecret]? {
        (try? String(contentsOfFile: path, encoding: .utf8)).flatMap(WebhookSecret.secrets)
    }
}
