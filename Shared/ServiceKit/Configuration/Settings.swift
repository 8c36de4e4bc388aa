/// The validated values of a service's ``ConfigurationKey``s. Precedence: environment, the file of `HELIOGRAPH_CONFIG`,
/// defaults.
///
/// Accessors throw only for an undeclared key, and for a key without value and default.
package struct Settings: Sendable {
    private let names: Set<String>
    private let values: [String: String]
    /// The files of secrets set as `NAME_FILE`, by the key's name.
    private let secretFiles: [String: String]

    /// - Parameter secretFiles: the files of secrets, by the key's name.
    init(keys: [ConfigurationKey], values: [String: String], secretFiles: [String: String]) {
        names = Set(keys.map(\.name))
        self.values = values
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
        guard names.contains(key.name) else {
            throw ConfigurationError("\(key.name): is not among this service's declared keys")
        }
        guard let text = values[key.name] ?? key.defaultValue else { return nil }
        guard let value = parse(text) else { throw ConfigurationError(SettingValue.problem(with: text, for: key)) }
        return value
    }
}
