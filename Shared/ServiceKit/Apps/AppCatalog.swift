package import PushProtocol
import FoundationEssentials

/// The apps this deployment serves, read from the YAML file that `HELIOGRAPH_APPS` names.
///
///     apps:
///       family-portal:
///         apns:
///           topic: com.example.family
///           key-id: ABCDE12345
///           team-id: FGHIJ67890
///           key-file: family-portal.p8                  # relative to this file
///           environments: [production, development]     # both when absent
///           # or, in place of the key, a push certificate for each environment:
///           # certificates: { production: { certificate-file: family.pem, key-file: family.key } }
///         fcm:
///           service-account-file: family-portal.json
///           messages-per-minute: 600000                 # the project's quota; FCM_QUOTA when absent
///         bearer:
///           - algorithm: ES256                          # or RS256, HS256
///             key-file: family-portal.pub.pem           # or jwks-url: https://portal.example/jwks.json
///             issuer: https://portal.example            # optional, as are all below
///             audience: push                            # with a jwks-url, this or an app-claim is demanded
///             user-claim: sub
///             app-claim: azp                            # the claim that names the app, …
///             app-value: family-portal-ios              # … and what it says; the app's id when absent
///             leeway: 30s
///
/// Strict: an unknown, missing, repeated or mistyped key is refused with its line, and so is a file that cannot be read by a
/// process that uses it.
/// What is in the files is the business of the services that use them.
package struct AppCatalog: Hashable, Sendable {
    /// In the order of their ids.
    package let apps: [AppConfiguration]

    package init(_ apps: [AppConfiguration]) { self.apps = apps.sorted { $0.id < $1.id } }

    /// In order.
    package var ids: [AppID] { apps.map(\.id) }

    /// The app of that id, if it is configured.
    package subscript(id: AppID) -> AppConfiguration? { apps.first { $0.id == id } }

    /// What the catalog's files are for: a process is given those that it uses, and no others.
    package struct Files: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// Signing keys and push certificates.
        package static let apns = Files(rawValue: 1 << 0)
        /// Service accounts.
        package static let fcm = Files(rawValue: 1 << 1)
        /// Keys of bearer tokens.
        package static let bearer = Files(rawValue: 1 << 2)
        package static let all: Files = [.apns, .fcm, .bearer]
    }

    /// The largest file that is read, in bytes: some thousands of apps.
    package static let maximumFileSize = 1024 * 1024

    /// Reads and checks the file.
    ///
    /// - Parameter files: those that have to be there; the others' paths are not looked at.
    package static func load(path: String, using files: Files = .all) throws(ConfigurationError) -> AppCatalog {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw ConfigurationError("\(path): cannot be read as UTF-8 text")
        }
        guard bytes.count <= maximumFileSize else {
            throw ConfigurationError("\(path): has \(bytes.count) bytes; at most \(maximumFileSize) are read")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError("\(path): cannot be read as UTF-8 text")
        }
        return try parse(text, path: path, using: files)
    }
}
