package import HTTP2
package import ServiceKit

extension ConfigurationKey {
    package static let providerCAFile = ConfigurationKey(
        "PROVIDER_CA_FILE", .file, summary: "PEM file of trusted CA certificates; the system's trust store when absent."
    )
}

extension Settings {
    /// The provider's endpoint at the URL of `key`.
    package func endpoint(_ key: ConfigurationKey) throws(ConfigurationError) -> HTTP2Endpoint {
        let (url, caFile) = (try string(key), try optionalString(.providerCAFile))
        do {
            return try HTTP2Endpoint(url: url, caFile: caFile)
        } catch {
            throw ConfigurationError("\(key.name): \(error)")
        }
    }
}
