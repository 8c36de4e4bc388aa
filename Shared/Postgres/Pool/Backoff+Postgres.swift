internal import Primitives

extension Backoff {
    static let reconnecting = Backoff(base: .milliseconds(100), cap: .seconds(5))
    static let transaction = Backoff(base: .milliseconds(5), cap: .milliseconds(200))
    static let migrationLock = Backoff(base: .milliseconds(250), cap: .seconds(5))
}
