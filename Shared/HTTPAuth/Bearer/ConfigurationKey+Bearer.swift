package import ServiceKit

extension ConfigurationKey {
    /// The maximum lifetime of bearer tokens, for all services that verify them.
    package static let bearerLifetime = ConfigurationKey(
        "HELIOGRAPH_BEARER_LIFETIME", .duration(.seconds(60) ... .seconds(3650 * 86_400)), default: "720h",
        summary: "The maximum lifetime of a bearer token, from iat (or now, without iat) to exp; 720h is 30 days.")
}
