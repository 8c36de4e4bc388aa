/// An HTTPS client for low request rates: OAuth access tokens, JWK sets, operator commands, webhooks.
///
/// Requires TLS 1.2 and verifies the peer with the system's trust store or one CA file. Allows plain `http` for
/// loopback addresses only, or with `allowsPlainHTTP` for all. Does not follow redirects. Uses the proxies of the
/// environment like curl (`HTTPS_PROXY`, `NO_PROXY`, …).
///
/// Copies share one thread and its connections, which end with the last copy; running requests then fail with
/// `cancelled`.
package struct HTTPSFetch: Sendable {
    struct Limits: Sendable {
        let caFile: String?
        let connectTimeout: Duration
        let timeout: Duration
        let maximumResponseSize: Int
        let keepsBody: Bool
        let mayConnect: AddressCheck?
        let allowsPlainHTTP: Bool
    }

    /// Decides whether a connection may be opened to an address of 4 or 16 bytes in network order. Called on the
    /// client's thread.
    package typealias AddressCheck = @Sendable (_ address: [UInt8]) -> Bool

    private let limits: Limits
    private let engine: FetchEngine

    /// - Parameters:
    ///   - caFile: PEM certificates to trust *instead of* the system's.
    ///   - timeout: of a whole request, including the connect.
    ///   - maximumResponseSize: the limit of the body and of the header block, each, in bytes.
    ///   - allowsPlainHTTP: whether `http` is allowed for other than loopback addresses.
    ///   - keepsBody: whether responses have their body. Otherwise it is read and dropped, without a limit of its size.
    ///   - connectionsPerHost: the maximum connections to one host; 0 for no limit. Further requests wait.
    ///   - mayConnect: refuses addresses after the host's name was resolved; a refused request fails with
    ///     `addressRefused`. With it, no proxy is used, because the proxy would choose the address.
    package init(
        caFile: String? = nil, connectTimeout: Duration = .seconds(5), timeout: Duration = .seconds(15),
        maximumResponseSize: Int = 1 << 20, allowsPlainHTTP: Bool = false, keepsBody: Bool = true,
        connectionsPerHost: Int = 4, mayConnect: AddressCheck? = nil
    ) {
        limits = Limits(
            caFile: caFile, connectTimeout: connectTimeout, timeout: timeout, maximumResponseSize: maximumResponseSize,
            keepsBody: keepsBody, mayConnect: mayConnect, allowsPlainHTTP: allowsPlainHTTP)
        engine = FetchEngine(connectionsPerHost: connectionsPerHost)
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
