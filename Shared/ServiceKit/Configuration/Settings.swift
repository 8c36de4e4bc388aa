import Configuration

/// The validated values of a service's ``ConfigurationKey``s. Precedence: environment, the file of `HELIOGRAPH_CONFIG`,
/// defaults.
///
/// Accessors throw only for an undeclared key, and for a key without value and default.
package struct Settings: Sendable {
    private let keys: [String: ConfigurationKey]
    private let reader: ConfigReader
    /// The files of secrets set as `NAME_FILE`, by the key's name.
    private let secretFiles: [String: String]

    init(keys: [ConfigurationKey], reader: ConfigReader, secretFiles: [String: String]) {
        self.keys = Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
        self.reader = reader
        self.secretFiles = secretFiles
    }

    /// Returns the file of a secret set as `NAME_FILE`, else `nil`.
    package func secretFile(of key: ConfigurationKey) -> String? { secretFiles[key.name] }

    package func string(_ key: ConfigurationKey) throws(ConfigurationError) -> String {
        try required(key) { $0 }
    }

    /// Returns `nil` if the key is not set and has no default.
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
            throw ConfigurationError("\(key.name): is not among this service's declared keys")
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
    /// Maps `AMQP_CA_FILE` to swift-configuration's `amqp.ca.file`.
    init(_ key: ConfigurationKey) {
        self.init(key.name.lowercased().split(separator: "_").map(String.init))
    }
}
