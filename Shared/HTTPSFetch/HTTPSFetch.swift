/// An HTTPS client for low request rates: OAuth access tokens, JWK sets, operator commands.
///
/// Requires TLS 1.2 and verifies the peer with the system's trust store or one CA file. Allows plain `http` for
/// loopback addresses only, or with `allowsPlainHTTP` for all. Does not follow redirects. Uses the proxies of the environment like curl (`HTTPS_PROXY`,
/// `NO_PROXY`, …).
///
/// Copies share one thread and its connections, which end with the last copy; running requests then fail with
/// `cancelled`.
package struct HTTPSFetch: Sendable {
    struct Limits: Sendable {
        let caFile: String?
        let connectTimeout: Duration
        let timeout: Duration
        let maximumResponseSize: Int
        let allowsPlainHTTP: Bool
    }

    private let limits: Limits
    private let engine: FetchEngine

    /// - Parameters:
    ///   - caFile: PEM certificates to trust *instead of* the system's.
    ///   - timeout: of a whole request, including the connect.
    ///   - maximumResponseSize: the limit of the body and of the header block, each, in bytes.
    ///   - allowsPlainHTTP: whether `http` is allowed for other than loopback addresses.
    package init(
        caFile: String? = nil, connectTimeout: Duration = .seconds(5), timeout: Duration = .seconds(15),
        maximumResponseSize: Int = 1 << 20, allowsPlainHTTP: Bool = false
    ) {
        limits = Limits(
            caFile: caFile, connectTimeout: connectTimeout, timeout: timeout, maximumResponseSize: maximumResponseSize,
            allowsPlainHTTP: allowsPlainHTTP)
        engine = FetchEngine()
    }

    /// Sends a request and returns the complete response. Cancelling the task ends the request at once.
    package func send(_ request: FetchRequest) async throws(FetchError) -> FetchResponse {
        let target = try FetchTarget(request.url, allowsPlainHTTP: limits.allowsPlainHTTP)
        try request.checkHeaders(origin: target.origin)
        return try await engine.send(TransferSpecification(request: request, target: target, limits: limits)).get()
    }

    /// Returns the reason for which requests to `url` are refused, or `nil`.
    package static func problem(with url: String, allowsPlainHTTP: Bool) -> String? {
        do throws(FetchError) {
            _ = try FetchTarget(url, allowsPlainHTTP: allowsPlainHTTP)
            return nil
        } catch {
            return error.detail
        }
    }
}
