package import PushProtocol
import Synchronization

/// The apps that a process serves: the configured apps at start, and apps that ``AppReloader`` added since.
///
/// Thread-safe. An app is never removed: a process serves it until it ends.
package final class ActiveApps: Sendable, ExpressibleByArrayLiteral {
    private struct Apps {
        var ids: Set<AppID>
        var webOrigins: Set<String> = []
    }

    private let apps: Mutex<Apps>

    package init(_ ids: some Sequence<AppID>) { apps = Mutex(Apps(ids: Set(ids))) }

    package convenience init(arrayLiteral elements: AppID...) { self.init(elements) }

    package convenience init(_ catalog: AppCatalog) {
        self.init([])
        for app in catalog.apps { insert(app) }
    }

    package var all: Set<AppID> { apps.withLock { $0.ids } }

    package var sorted: [AppID] { all.sorted() }

    package func contains(_ app: AppID) -> Bool { apps.withLock { $0.ids.contains(app) } }

    /// Whether an app lists this origin of web clients.
    package func listsWebOrigin(_ origin: String) -> Bool { apps.withLock { $0.webOrigins.contains(origin) } }

    package func insert(_ app: AppConfiguration) {
        apps.withLock {
            $0.ids.insert(app.id)
            $0.webOrigins.formUnion(app.webOrigins)
        }
    }
}
