package import PushProtocol
import Synchronization

/// The apps that a process serves: the configured apps at start, and apps that ``AppReloader`` added since.
///
/// Thread-safe. An app is never removed: a process serves it until it ends.
package final class ActiveApps: Sendable, ExpressibleByArrayLiteral {
    private struct Apps {
        var ids: Set<AppID>
        var webOrigins: Set<String> = []
        var reported: [ReportKind: Set<AppID>] = [:]
        var borrowers: [AppID: Set<AppID>] = [:]
        var recordings: [AppID: RecordingTerms] = [:]
        var webPush: Set<AppID> = []
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

    /// Whether the app has a Web Push key, so that its browsers can be reached.
    package func hasWebPush(_ app: AppID) -> Bool { apps.withLock { $0.webPush.contains(app) } }

    /// Whether the app's upstream asks for reports of this kind.
    package func wants(_ kind: ReportKind, of app: AppID) -> Bool {
        apps.withLock { $0.reported[kind]?.contains(app) == true }
    }

    /// Whether `owner` lets its events reach the rules of `borrower`.
    package func sharesEvents(of owner: AppID, with borrower: AppID) -> Bool {
        apps.withLock { $0.borrowers[owner]?.contains(borrower) == true }
    }

    /// The apps whose decisions are recorded.
    package var recordings: [AppID: RecordingTerms] { apps.withLock { $0.recordings } }

    /// Notes the apps that may use an app's events, before the app is in service.
    package func noteBorrowers(of app: AppConfiguration) {
        apps.withLock { $0.borrowers[app.id] = app.eventBorrowers }
    }

    package func insert(_ app: AppConfiguration) {
        apps.withLock {
            $0.ids.insert(app.id)
            for kind in ReportKind.allCases where app.wants(kind) { $0.reported[kind, default: []].insert(app.id) }
            $0.borrowers[app.id] = app.eventBorrowers
            $0.webOrigins.formUnion(app.webOrigins)
            $0.recordings[app.id] = app.recording
            if app.webPush != nil { $0.webPush.insert(app.id) }
        }
    }
}
