package import PushProtocol
import Synchronization

/// The apps that a process serves: the configured apps at start, and apps that ``AppReloader`` added since.
///
/// Thread-safe. An app is never removed: a process serves it until it ends.
package final class ActiveApps: Sendable, ExpressibleByArrayLiteral {
    private let ids: Mutex<Set<AppID>>

    package init(_ ids: some Sequence<AppID>) { self.ids = Mutex(Set(ids)) }

    package convenience init(arrayLiteral elements: AppID...) { self.init(elements) }

    /// The apps now.
    package var all: Set<AppID> { ids.withLock { $0 } }

    /// The apps now, sorted.
    package var sorted: [AppID] { all.sorted() }

    package func contains(_ app: AppID) -> Bool { ids.withLock { $0.contains(app) } }

    package func insert(_ app: AppID) { ids.withLock { _ = $0.insert(app) } }
}
