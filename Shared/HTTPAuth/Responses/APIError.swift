package import HTTPTypes

/// An error response of an HTTP API.
package struct APIError: Error {
    /// 4xx or 5xx.
    package let status: HTTPResponse.Status
    /// A sentence for the client: the problem and the next step. Does not repeat request data.
    package let message: String
    /// The value of `WWW-Authenticate` (RFC 6750 §3); nil means `Bearer` for 401 and no header otherwise.
    package var challenge: String?
    /// The value of `Retry-After`, in seconds.
    package var retryAfter: Int?

    package init(
        status: HTTPResponse.Status, message: String, challenge: String? = nil, retryAfter: Int? = nil
    ) {
        self.status = status
        self.message = message
        self.challenge = challenge
        self.retryAfter = retryAfter
    }

    /// The database cannot be reached; the client may retry.
    package static let databaseUnavailable = APIError(
        status: .serviceUnavailable, message: "the database is unavailable; try again", retryAfter: 2)
    /// Too many requests wait for the database; the client may retry.
    package static let busy = APIError(
        status: .serviceUnavailable, message: "too many requests wait for the database; try again", retryAfter: 2)
    package static let failed = APIError(
        status: .internalServerError, message: "internal error; see the service's log")

    /// The response's header fields.
    package var headers: HTTPFields {
        var headers = HTTPFields()
        if let challenge = challenge ?? (status == .unauthorized ? "Bearer" : nil) {
            headers[.wwwAuthenticate] = challenge
        }
        if let retryAfter { headers[.retryAfter] = String(retryAfter) }
        return headers
    }
}
