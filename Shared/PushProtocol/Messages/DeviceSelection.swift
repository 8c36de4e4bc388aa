/// Selects devices of a notification's recipients. Absent criteria select all devices.
package struct DeviceSelection: Codable, Hashable, Sendable {
    /// The selected platforms; absent: all.
    package var platforms: [DeviceFilter.Platform]?
    /// Leaves out devices that have also registered another kind of token.
    package var unless: Registered?

    package init(platforms: [DeviceFilter.Platform]? = nil, unless: Registered? = nil) {
        self.platforms = platforms
        self.unless = unless
    }

    /// A registration of the same device, or of the same user where one of the two names no installation.
    package struct Registered: Codable, Hashable, Sendable {
        package var kind: RegistrationKind
        /// The registration's scope, such as the id of one Live Activity. Absent: any scope, or none.
        package var scope: String?

        package init(kind: RegistrationKind, scope: String? = nil) {
            self.kind = kind
            self.scope = scope
        }
    }
}
