import Foundation

/// Keeps a few small values across restarts of the app. The values include device tokens and the installation id, so the
/// store is private to the app.
public protocol ClientStore: Sendable {
    /// The last value of a key; nil if there is none.
    func value(forKey key: String) -> Data?
    /// Replaces the value of a key; nil removes it.
    func setValue(_ value: Data?, forKey key: String)
}

/// A store in the app's user defaults.
public struct UserDefaultsStore: ClientStore {
    private let suite: String?

    /// - Parameter suite: The name of an app group, so that a notification extension shares the values.
    public init(suite: String? = nil) { self.suite = suite }

    private var defaults: UserDefaults { suite.flatMap(UserDefaults.init(suiteName:)) ?? .standard }

    /// The last value of a key.
    public func value(forKey key: String) -> Data? { defaults.data(forKey: "heliograph.\(key)") }

    /// Replaces the value of a key.
    public func setValue(_ value: Data?, forKey key: String) {
        if let value {
            defaults.set(value, forKey: "heliograph.\(key)")
        } else {
            defaults.removeObject(forKey: "heliograph.\(key)")
        }
    }
}

/// A store in the files of one folder.
public struct FileStore: ClientStore {
    private let folder: URL

    /// - Parameter folder: Is created when the first value is written.
    public init(folder: URL) { self.folder = folder }

    /// The last value of a key.
    public func value(forKey key: String) -> Data? { try? Data(contentsOf: folder.appendingPathComponent(key)) }

    /// Replaces the value of a key. A value that cannot be written is lost at the next start.
    public func setValue(_ value: Data?, forKey key: String) {
        let file = folder.appendingPathComponent(key)
        if let value {
            try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try? value.write(to: file, options: .atomic)
        } else {
            try? FileManager.default.removeItem(at: file)
        }
    }
}

/// A store in memory, for tests.
public final class MemoryStore: ClientStore, @unchecked Sendable {
    private let lock = NSLock()
    private var values: [String: Data] = [:]

    /// An empty store.
    public init() {}

    /// The last value of a key.
    public func value(forKey key: String) -> Data? { lock.withLock { values[key] } }

    /// Replaces the value of a key.
    public func setValue(_ value: Data?, forKey key: String) { lock.withLock { values[key] = value } }
}

extension ClientStore {
    func decoded<Value: Decodable>(_ type: Value.Type, forKey key: String) -> Value? {
        value(forKey: key).flatMap { try? JSONDecoder().decode(type, from: $0) }
    }

    func encode(_ value: some Encodable, forKey key: String) {
        setValue(try? JSONEncoder().encode(value), forKey: key)
    }
}
