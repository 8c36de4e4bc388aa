package import ServiceKit

extension ConfigurationKey {
    /// The upper bound of a bearer token's lifetime, for every service that verifies them.
    package static let bearerLifetime = ConfigurationKey(
        "HELIOGRAPH_BEARER_LIFETIME", .duration(.seconds(60) ... .seconds(3650 * 86_400)), default: "720h",
        summary: "How long a bearer token may be valid, from iat (or now, where it has none) to exp; 720h is 30 days.")
}
