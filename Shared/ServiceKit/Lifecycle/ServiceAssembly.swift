package import ServiceLifecycle

/// What a build function returns: everything that runs, in dependency order. Shutting down walks it backwards, waiting
/// for each to finish before the one it depends on is told.
package struct ServiceAssembly: Sendable {
    package let services: [any Service]

    package init(_ services: [any Service]) { self.services = services }
}
