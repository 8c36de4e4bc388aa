import ArgumentParser
import Foundation
import Logging
import PushProtocol
import ServiceConnections
import ServiceKit
import TokenEncryption

/// The settings of a command, validated like a service's.
enum Environment {
    static let registryURL = ConfigurationKey(
        "REGISTRY_URL", .url(schemes: ["http", "https"]), required: true,
        summary: "The URL of the registry's operator API.")
    static let operatorKey = ConfigurationKey(
        "REGISTRY_OPERATOR_KEY", required: true, secret: true, summary: "An API key of the registry's operator API.")

    static let tokenKeysFile = ConfigurationKey(
        "REGISTRY_TOKEN_KEYS_FILE", .file,
        summary: "The registry's file of token encryption keys, for devices import and export.")

    /// All keys that any command reads. A test compares them with the deployment files.
    static let keys: [ConfigurationKey] =
        .brokerConnection + .postgres + .apps + [registryURL, operatorKey, tokenKeysFile, .webhookPrivateNetworks]
        + ChannelManagementClient.keys

    /// Loads only the settings that a command needs.
    static func settings(_ keys: [ConfigurationKey]) throws -> Settings {
        do {
            return try Settings.load(keys: keys, environment: ProcessInfo.processInfo.environment)
        } catch {
            throw CommandError("\(error)", .configuration)
        }
    }

    /// Whether a setting has a value, valid or not.
    static func isSet(_ key: ConfigurationKey) -> Bool {
        do {
            return try settings([key]).optionalString(key) != nil
        } catch {
            return !"\(error)".contains("is required")
        }
    }

    /// Loads the apps file from the option or `HELIOGRAPH_APPS`. Files named in it are read later, by the command that
    /// needs them.
    static func apps(_ path: String?) throws -> AppCatalog {
        do {
            if let path { return try AppCatalog.load(path: path, using: []) }
            return try AppCatalog.load(path: try settings(.apps).string(.apps), using: [])
        } catch let error as ConfigurationError {
            throw CommandError(error)
        }
    }

    /// Logs errors only: the output of a command is its result.
    static var logger: Logger {
        var logger = Logger(label: "pushctl") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}

extension UUID {
    /// Parses the id of a device.
    init(device text: String) throws {
        guard let id = UUID(uuidString: text) else { throw CommandError("“\(text)” is not a device's id", .usage) }
        self = id
    }
}

extension AppID {
    /// Parses an app id given by the operator.
    init(named name: String) throws {
        guard let id = AppID(rawValue: name) else { throw CommandError("“\(name)” is not an app's id", .usage) }
        self = id
    }
}

/// `--token-keys`, for commands that read or write tokens in the database.
struct TokenKeysOption: ParsableArguments {
    @Option(help: "The registry's file of token encryption keys. Default: REGISTRY_TOKEN_KEYS_FILE.")
    var tokenKeys: String?

    /// `nil` without a key file.
    func load() throws -> TokenCipher? {
        let set = try Environment.settings([Environment.tokenKeysFile])
        guard let path = try tokenKeys ?? set.optionalString(Environment.tokenKeysFile) else { return nil }
        guard let contents = FileManager.default.contents(atPath: path) else {
            throw CommandError("\(path): cannot be read; choose another file with --token-keys", .notFound)
        }
        do throws(TokenCipher.KeyFileError) { return try TokenCipher(file: Array(contents)) } catch {
            throw CommandError("\(path): \(error)", .input)
        }
    }
}

/// `--apps`, for commands that need the app catalogue.
struct AppsOption: ParsableArguments {
    @Option(help: "The apps file. Default: HELIOGRAPH_APPS.")
    var apps: String?

    func load() throws -> AppCatalog { try Environment.apps(apps) }

    /// The configured app with this id.
    func app(_ name: String) throws -> AppConfiguration {
        guard let id = AppID(rawValue: name), let app = try load()[id] else {
            throw CommandError("no app “\(name)” is in the apps file", .notFound)
        }
        return app
    }
}
