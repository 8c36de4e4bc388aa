package import PushProtocol

extension Rule {
    /// The devices that a rule selects: `platforms` and `unless` under `how`.
    package struct DeviceTemplate: Hashable, Sendable {
        package var platforms: [DeviceFilter.Platform]?
        package var unless: Registered?

        package struct Registered: Hashable, Sendable {
            package var kind: RegistrationKind
            package var scope: Template?
        }

        /// The selection for a digest's summary, which has no event for a scope.
        package var ofSummary: DeviceSelection {
            DeviceSelection(platforms: platforms, unless: unless.map { DeviceSelection.Registered(kind: $0.kind) })
        }
    }

    /// Renders the selection for one event; `nil` if the rule selects all devices.
    package func deviceSelection(_ scope: Scope) throws(PlacedProblem) -> DeviceSelection? {
        guard let devices = how.devices else { return nil }
        var selection = devices.ofSummary
        selection.unless?.scope = try devices.unless?.scope?.tokenScope(scope, place: "how.unless.scope")
        return selection
    }
}
