/// One setting of a service, declared once as data: what reads it, what `--help` prints and what the deployment files
/// are held against are all this value.
package struct ConfigurationKey: Hashable, Sendable {
    /// The environment variable, and the key in a configuration file: upper case words joined by `_`.
    package let name: String
    /// What may stand there; checked at start-up.
    package let kind: Kind
    /// What holds when nothing is set.
    package let defaultValue: String?
    /// Whether starting without it is refused.
    package let isRequired: Bool
    /// Whether its value never appears anywhere. A secret can also be given as `NAME_FILE`, the path of a file that
    /// holds it.
    package let isSecret: Bool
    /// One sentence for people.
    package let summary: String

    package init(
        _ name: String, _ kind: Kind = .text, default defaultValue: String? = nil, required: Bool = false,
        secret: Bool = false, summary: String
    ) {
        self.name = name
        self.kind = kind
        self.defaultValue = defaultValue
        self.isRequired = required
        self.isSecret = secret
        self.summary = summary
    }

    /// The variable that names a file holding this secret.
    package var fileName: String { name + "_FILE" }
}

extension ConfigurationKey {
    /// The shape of a value.
    package enum Kind: Hashable, Sendable {
        case text
        /// Text that is hard to guess: at least this many bytes of UTF-8.
        case longSecret(bytes: Int)
        /// `true`, `yes`, `1` or `false`, `no`, `0`.
        case boolean
        case integer(ClosedRange<Int>)
        /// A TCP port; 0 takes any free one.
        case port
        /// A whole number with a unit: `250ms`, `5s`, `2m`, `1h`.
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
