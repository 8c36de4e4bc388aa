/// The result of one request to a webhook.
enum RequestResult: Hashable, Sendable {
    /// 2xx.
    case delivered
    /// 410: the receiver wants no more requests.
    case gone
    /// The endpoint is unavailable: no response, 429, 502, 503, 504. `retryAfter` is the receiver's wish.
    case unavailable(String, retryAfter: Duration?)
    /// Any other status. It may be about this report only.
    case rejected(String)
    /// No request was sent, because the destination is not allowed.
    case refused(String)

    /// The most that a receiver may delay the next request.
    static let maximumRetryAfter = Duration.seconds(3600)

    /// - Parameter retryAfter: the value of `Retry-After`; only seconds are read.
    init(status: Int, retryAfter: String? = nil) {
        switch status {
        case 200..<300: self = .delivered
        case 410: self = .gone
        case 429, 502, 503, 504:
            let seconds = retryAfter.flatMap { Int64($0) }.map { Duration.seconds(max(0, $0)) }
            self = .unavailable("status \(status)", retryAfter: seconds.map { min($0, Self.maximumRetryAfter) })
        case 300..<400: self = .rejected("status \(status); redirects are not followed")
        default: self = .rejected("status \(status)")
        }
    }

    /// The metric label.
    var label: String {
        switch self {
        case .delivered: "delivered"
        case .gone: "gone"
        case .unavailable: "unavailable"
        case .rejected: "rejected"
        case .refused: "refused"
        }
    }
}
