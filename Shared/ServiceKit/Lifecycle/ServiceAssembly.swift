package import ServiceLifecycle

/// The services of a process, in dependency order, as returned by its build function. They shut down in reverse order,
/// each after its dependents have finished.
package struct ServiceAssembly: Sendable {
    package let services: [any Service]

    package init(_ services: [any Service]) { self.services = services }
}
