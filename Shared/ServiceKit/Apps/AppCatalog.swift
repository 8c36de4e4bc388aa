package import PushProtocol
import FoundationEssentials

/// The apps of this deployment, read from the YAML file of `HELIOGRAPH_APPS`. `Services/Pushctl/README.md` describes its
/// keys.
///
/// Parsing is strict: an unknown, missing, repeated or mistyped key is an error with its line, and so is an unreadable
/// file that the process uses. The services validate the files' content.
package struct AppCatalog: Hashable, Sendable {
    /// Sorted by id.
    package let apps: [AppConfiguration]

    package init(_ apps: [AppConfiguration]) { self.apps = apps.sorted { $0.id < $1.id } }

    package var ids: [AppID] { apps.map(\.id) }

    /// The app with this id, if configured.
    package subscript(id: AppID) -> AppConfiguration? { apps.first { $0.id == id } }

    /// The kinds of files in the catalog. A process needs only the files that it uses.
    package struct Files: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// Signing keys and push certificates.
        package static let apns = Files(rawValue: 1 << 0)
        /// Service accounts.
        package static let fcm = Files(rawValue: 1 << 1)
        /// Verification keys of users' bearer tokens.
        package static let bearer = Files(rawValue: 1 << 2)
        /// Verification keys of publishers' bearer tokens.
        package static let publishers = Files(rawValue: 1 << 3)
        /// Secrets of webhooks.
        package static let webhooks = Files(rawValue: 1 << 4)
        /// VAPID keys.
        package static let webPush = Files(rawValue: 1 << 5)
        package static let all: Files = [.apns, .fcm, .bearer, .publishers, .webhooks, .webPush]
    }

    /// The maximum file size in bytes, enough for several thousand apps.
    package static let maximumFileSize = 1024 * 1024

    /// Reads and validates the file.
    ///
    /// - Parameter files: the kinds of files that must exist; other paths are not checked.
    package static func load(path: String, using files: Files = .all) throws(ConfigurationError) -> AppCatalog {
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(filePath: path))
        } catch {
            let code = ((error as? CocoaError)?.underlying as? POSIXError).map { " (\($0.code))" } ?? ""
            throw ConfigurationError("\(path): cannot be read\(code)")
        }
        guard bytes.count <= maximumFileSize else {
            throw ConfigurationError("\(path): has \(bytes.count) bytes; the maximum is \(maximumFileSize)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError("\(path): is not UTF-8 text")
        }
        return try parse(text, path: path, using: files)
    }
}
