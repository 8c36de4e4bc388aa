/// Plain HTTPS requests at a low rate: access tokens, key sets, operators' calls.
///
/// TLS 1.2 or later, the peer verified against the system's trust store or one CA file. Plain `http` is allowed to
/// loopback addresses only. Redirects are not followed: a token endpoint that moves is a change of configuration.
/// Proxies are taken from the environment as libcurl does (`HTTPS_PROXY`, `NO_PROXY`, …).
///
/// Copies share one thread and its connections, which end with the last copy; requests still under way are then
/// answered `cancelled`.
package struct HTTPSFetch: Sendable {
    struct Limits: Sendable {
        let caFile: String?
        let connectTimeout: Duration
        let timeout: Duration
        let maximumResponseSize: Int
    }

    private let limits: Limits
    private let engine: FetchEngine

    /// - Parameters:
    ///   - caFile: PEM certificates to trust *instead of* the system's.
    ///   - timeout: for a whole request, connecting included.
    ///   - maximumResponseSize: of the body and of the header block, each, in bytes.
    package init(
        caFile: String? = nil, connectTimeout: Duration = .seconds(5), timeout: Duration = .seconds(15),
        maximumResponseSize: Int = 1 << 20
    ) {
        limits = Limits(
            caFile: caFile, connectTimeout: connectTimeout, timeout: timeout, maximumResponseSize: maximumResponseSize)
        engine = FetchEngine()
    }

    /// Sends a request and waits for the whole response. Ends at once when the task is cancelled.
    package func send(_ request: FetchRequest) async throws(FetchError) -> FetchResponse {
        let target = try FetchTarget(request.url)
        try request.checkHeaders(origin: target.origin)
        return try await engine.send(TransferSpecification(request: request, target: target, limits: limits)).get()
    }
}
