/// The declaration of a setting. Reading, `--help` and the tests of the deployment files all use it.
///
/// Two keys are equal if their names are.
package struct ConfigurationKey: Sendable {
    /// The environment variable, and the key in a configuration file: upper-case words joined by `_`.
    package let name: String
    /// The kind of value, validated at the start.
    package let kind: Kind
    /// The value if none is set.
    package let defaultValue: String?
    /// Whether the start fails without it.
    package let isRequired: Bool
    /// Whether its value is never logged or printed. A secret can also be set as `NAME_FILE`, the path of a file with
    /// it.
    package let isSecret: Bool
    /// One sentence for `--help`.
    package let summary: String
    /// A further check of the value, given all values by name. Returns the problem, or `nil`.
    package let check: Check?

    package typealias Check = @Sendable (_ value: String, _ values: [String: String]) -> String?

    package init(
        _ name: String, _ kind: Kind = .text, default defaultValue: String? = nil, required: Bool = false,
        secret: Bool = false, summary: String, check: Check? = nil
    ) {
        self.name = name
        self.kind = kind
        self.defaultValue = defaultValue
        self.isRequired = required
        self.isSecret = secret
        self.summary = summary
        self.check = check
    }

    /// The variable with the path of a file that contains this secret.
    package var fileName: String { name + "_FILE" }
}

extension ConfigurationKey: Hashable {
    package static func == (a: ConfigurationKey, b: ConfigurationKey) -> Bool { a.name == b.name }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension ConfigurationKey {
    package enum Kind: Hashable, Sendable {
        case text
        /// A secret of at least this many bytes of UTF-8.
        case longSecret(bytes: Int)
        /// `true`, `yes`, `1` or `false`, `no`, `0`.
        case boolean
        case integer(ClosedRange<Int>)
        /// A TCP port; 0 selects any free one.
        case port
        /// An integer with a unit: `250ms`, `5s`, `2m`, `1h`.
        case duration(ClosedRange<Duration>)
        /// An absolute URL of one of these schemes, with a host.
        case url(schemes: [String])
        /// A file that exists and can be read.
        case file
        /// A folder that exists and can be read.
        case directory
        case choice([String])
    }
}
