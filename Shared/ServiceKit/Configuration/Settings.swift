import Configuration

/// The values of a service's ``ConfigurationKey``s, checked as a whole when they are loaded: environment first, then
/// the file that `HELIOGRAPH_CONFIG` names, then defaults.
///
/// The accessors throw only for a key that the service did not declare, or that is neither set nor has a default.
package struct Settings: Sendable {
    private let keys: [String: ConfigurationKey]
    private let reader: ConfigReader
    /// The file that each secret was read from, by the key's name, where it was given as `NAME_FILE`.
    private let secretFiles: [String: String]

    init(keys: [ConfigurationKey], reader: ConfigReader, secretFiles: [String: String]) {
        self.keys = Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
        self.reader = reader
        self.secretFiles = secretFiles
    }

    /// The file that a secret was given as; `nil` when it came from a variable.
    package func secretFile(of key: ConfigurationKey) -> String? { secretFiles[key.name] }

    package func string(_ key: ConfigurationKey) throws(ConfigurationError) -> String {
        try required(key) { $0 }
    }

    /// `nil` when the key is neither set nor has a default.
    package func optionalString(_ key: ConfigurationKey) throws(ConfigurationError) -> String? {
        try optional(key) { $0 }
    }

    package func integer(_ key: ConfigurationKey) throws(ConfigurationError) -> Int {
        try required(key) { Int($0) }
    }

    package func boolean(_ key: ConfigurationKey) throws(ConfigurationError) -> Bool {
        try required(key, SettingValue.boolean)
    }

    package func duration(_ key: ConfigurationKey) throws(ConfigurationError) -> Duration {
        try required(key, SettingValue.duration)
    }

    private func required<Value>(
        _ key: ConfigurationKey, _ parse: (String) -> Value?
    ) throws(ConfigurationError) -> Value {
        guard let value = try optional(key, parse) else {
            throw ConfigurationError("\(key.name): is not set; \(key.summary)")
        }
        return value
    }

    private func optional<Value>(
        _ key: ConfigurationKey, _ parse: (String) -> Value?
    ) throws(ConfigurationError) -> Value? {
        guard keys[key.name] != nil else {
            throw ConfigurationError("\(key.name): is read by this service but not among its declared keys")
        }
        guard let text = value(of: key) else { return nil }
        guard let value = parse(text) else { throw ConfigurationError(SettingValue.problem(with: text, for: key)) }
        return value
    }

    private func value(of key: ConfigurationKey) -> String? {
        reader.string(forKey: ConfigKey(key), isSecret: key.isSecret) ?? key.defaultValue
    }
}

extension ConfigKey {
    /// `AMQP_CA_FILE` is `amqp.ca.file` to swift-configuration, which makes the variable's name of it again.
    init(_ key: ConfigurationKey) {
        self.init(key.name.lowercased().split(separator: "_").map(String.init))
    }
}
