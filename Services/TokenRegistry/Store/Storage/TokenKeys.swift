package import Logging
package import ServiceKit
package import TokenEncryption
import Foundation
import Metrics
import PushProtocol
import Synchronization

/// The keys of `REGISTRY_TOKEN_KEYS_FILE`. ``TokenRewriter`` rereads the file every few seconds; a token with an
/// unknown key rereads it at once, at most once a second.
///
/// If the file is missing or invalid, the earlier keys stay in use. Each fault is logged once as a warning.
package final class TokenKeys: Sendable {
    /// Stores tokens in clear.
    package static let none = TokenKeys()

    /// Minimum time between two log messages about tokens that cannot be decrypted.
    static let logInterval = Duration.seconds(60)

    private struct State {
        var cipher: TokenCipher
        var contents: [UInt8]
        var fault: String?
        var read: ContinuousClock.Instant?
        var told: ContinuousClock.Instant?
    }

    private let path: String?
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameter path: the key file; `nil`: tokens are stored in clear, with a warning.
    package init(file path: String?, logger: Logger) throws(ConfigurationError) {
        self.path = path
        self.logger = logger
        guard let path else {
            logger.warning("Device tokens are stored in clear; set REGISTRY_TOKEN_KEYS_FILE to encrypt them")
            state = Mutex(State(cipher: .none, contents: []))
            return
        }
        guard let contents = Self.contents(of: path) else {
            throw ConfigurationError("\(Self.name): \(path) cannot be read")
        }
        do throws(TokenCipher.KeyFileError) {
            let cipher = try TokenCipher(file: contents)
            if cipher.writingKeyID == TokenCipher.plain {
                logger.warning(
                    "Device tokens are stored in clear; the first line of REGISTRY_TOKEN_KEYS_FILE says “plain”")
            }
            state = Mutex(State(cipher: cipher, contents: contents))
        } catch {
            throw ConfigurationError("\(Self.name): \(path): \(error)")
        }
    }

    private init() {
        path = nil
        logger = Logger(label: "tokens", factory: { _ in SwiftLogNoOpLogHandler() })
        state = Mutex(State(cipher: .none, contents: []))
    }

    package var isConfigured: Bool { path != nil }

    /// The keys that were read last.
    package var cipher: TokenCipher { state.withLock { $0.cipher } }

    /// Decrypts the stored text of a token. Counts each failure.
    func open(_ stored: String, device: UUID, app: AppID) throws(TokenCipher.DecryptionError) -> DeviceToken {
        guard TokenCipher.isSealed(stored) else { return DeviceToken(secret: stored) }
        do { return try cipher.open(stored, device: device, app: app) } catch {
            guard case .unknownKey(let id) = error else { throw note(error, device, app) }
            refresh(after: .seconds(1))
            guard cipher.ids.contains(id) else { throw note(error, device, app) }
        }
        do { return try cipher.open(stored, device: device, app: app) } catch { throw note(error, device, app) }
    }

    /// Rereads the file.
    ///
    /// - Parameter pause: minimum time since the last read.
    /// - Returns: whether the keys have changed.
    @discardableResult
    package func refresh(after pause: Duration = .zero) -> Bool {
        guard let path else { return false }
        let isDue = state.withLock { state in
            guard state.read.map({ ContinuousClock.now - $0 >= pause }) ?? true else { return false }
            state.read = .now
            return true
        }
        guard isDue else { return false }
        guard let contents = Self.contents(of: path) else {
            tell(fault: "it cannot be read")
            return false
        }
        guard state.withLock({ $0.contents != contents || $0.fault != nil }) else { return false }
        do throws(TokenCipher.KeyFileError) {
            let cipher = try TokenCipher(file: contents)
            let isNew = state.withLock { state in
                defer { (state.cipher, state.contents, state.fault) = (cipher, contents, nil) }
                return state.contents != contents
            }
            if isNew {
                logger.notice(
                    "\(Self.name) has changed; the new keys are in use", metadata: ["key_id": "\(cipher.writingKeyID)"])
            }
            return isNew
        } catch {
            tell(fault: error.description)
            return false
        }
    }

    private func tell(fault: String) {
        let isNews = state.withLock { state in
            defer { state.fault = fault }
            return state.fault != fault
        }
        guard isNews else { return }
        logger.warning(
            "\(Self.name) cannot be used; the earlier keys stay in use", metadata: [LogKey.reason: "\(fault)"])
    }

    private func note(_ fault: TokenCipher.DecryptionError, _ device: UUID, _ app: AppID) -> TokenCipher.DecryptionError
    {
        Counter(
            label: "heliograph_registry_unreadable_tokens_total",
            dimensions: [("app", app.rawValue), ("reason", fault.metricLabel)]
        ).increment()
        let isDue = state.withLock { state in
            guard state.told.map({ ContinuousClock.now - $0 >= Self.logInterval }) ?? true else { return false }
            state.told = .now
            return true
        }
        guard isDue else { return fault }
        let key: String =
            switch fault {
            case .unknownKey(let id), .notAuthentic(let id): id
            case .malformed: "unknown"
            }
        logger.warning(
            "A stored device token cannot be decrypted; nothing is sent to the device until it registers again or the key is back",
            metadata: [
                LogKey.app: "\(app)", LogKey.device: "\(device.uuidString.lowercased())", "key_id": "\(key)",
                LogKey.reason: "\(fault.metricLabel)",
            ])
        return fault
    }

    private static let name = ConfigurationKey.registryTokenKeysFile.name

    /// Reads at most the maximum size of a key file plus one byte.
    private static func contents(of path: String) -> [UInt8]? {
        guard let file = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? file.close() }
        return (try? file.read(upToCount: TokenCipher.maximumFileSize + 1) ?? Data()).map(Array.init)
    }
}

extension ConfigurationKey {
    package static let registryTokenKeysFile = ConfigurationKey(
        "REGISTRY_TOKEN_KEYS_FILE", .file,
        summary:
            "Keys that encrypt stored device tokens, one ID:BASE64 a line; absent: tokens are stored in clear."
    )
}
