package import ServiceKit

extension ServiceContext {
    /// Creates the verifier of the bearer tokens of one kind of holder, with the setting `HELIOGRAPH_BEARER_LIFETIME`.
    ///
    /// - Parameter caFile: the setting that names CA certificates for the URLs of key sets.
    /// - Throws: for an unusable key file or an invalid URL; an unreachable URL is retried.
    package func bearerVerifier(
        _ catalog: AppCatalog, of holder: TokenHolder = .user, caFile: ConfigurationKey
    ) async throws(ConfigurationError) -> BearerVerifier {
        try await BearerVerifier(
            catalog, of: holder, fetch: BearerVerifier.fetch(caFile: try settings.optionalString(caFile)),
            maximumLifetime: try settings.duration(.bearerLifetime), logger: logger)
    }
}
