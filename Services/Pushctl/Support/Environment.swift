import ArgumentParser
import Foundation
import Logging
import PushProtocol
import ServiceKit
import TokenEncryption

/// What a command reads of its surroundings, checked like a service's configuration.
enum Environment {
    static let registryURL = ConfigurationKey(
        "REGISTRY_URL", .url(schemes: ["http", "https"]), required: true,
        summary: "Where the token registry serves its operator API.")
    static let operatorKey = ConfigurationKey(
        "REGISTRY_OPERATOR_KEY", required: true, secret: true, summary: "The key of the registry's operator API.")

    static let tokenKeysFile = ConfigurationKey(
        "REGISTRY_TOKEN_KEYS_FILE", .file,
        summary: "The registry's file of keys for stored tokens, for devices import and export.")

    /// Every key that any command reads; the deployment files are held against it.
    static let keys: [ConfigurationKey] =
        .amqp + .postgres + .apps + [registryURL, operatorKey, tokenKeysFile] + ChannelDirectory.keys

    /// The settings that one command needs, and no others.
    static func settings(_ keys: [ConfigurationKey]) throws -> Settings {
        do {
            return try Settings.load(keys: keys, environment: ProcessInfo.processInfo.environment)
        } catch {
            throw Refusal("\(error)")
        }
    }

    /// The apps file: the option where it is given, else `HELIOGRAPH_APPS`. Of the files that it names, a command reads its
    /// own, and says so where it cannot.
    static func apps(_ path: String?) throws -> AppCatalog {
        do {
            if let path { return try AppCatalog.load(path: path, using: []) }
            return try AppCatalog.load(path: try settings(.apps).string(.apps), using: [])
        } catch let error as ConfigurationError {
            throw Refusal("\(error)")
        }
    }

    /// Speaks up only when something is wrong: a command's output is its answer.
    static var logger: Logger {
        var logger = Logger(label: "pushctl") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}

/// A command that cannot do what it was asked to: one clear sentence, exit code 1.
struct Refusal: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension AppID {
    /// The app that somebody named.
    init(named name: String) throws {
        guard let id = AppID(rawValue: name) else { throw Refusal("“\(name)” is not an app's id") }
        self = id
    }
}

/// `--token-keys`, for commands that read or write tokens in the database.
struct TokenKeysOption: ParsableArguments {
    @Option(help: "The registry's file of keys for stored tokens; REGISTRY_TOKEN_KEYS_FILE when it is not given.")
    var tokenKeys: String?

    /// `nil` when there is no file.
    func load() throws -> TokenCipher? {
        let set = try Environment.settings([Environment.tokenKeysFile])
        guard let path = try tokenKeys ?? set.optionalString(Environment.tokenKeysFile) else { return nil }
        guard let contents = FileManager.default.contents(atPath: path) else {
            throw Refusal("\(path): is not a file that can be read; --token-keys names another one")
        }
        do throws(TokenCipher.FileFault) { return try TokenCipher(file: Array(contents)) } catch {
            throw Refusal("\(path): \(error)")
        }
    }
}

/// `--apps`, for every command that needs to know the apps.
struct AppsOption: ParsableArguments {
    @Option(help: "The apps file; HELIOGRAPH_APPS when it is not given.")
    var apps: String?

    func load() throws -> AppCatalog { try Environment.apps(apps) }
}
