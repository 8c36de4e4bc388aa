package import HTTPTypes

/// A request that is turned down, and why.
package struct APIRefusal: Error {
    package let status: HTTPResponse.Status
    package let message: String
    /// What `WWW-Authenticate` says (RFC 6750 §3), where it says more than `Bearer`.
    package var challenge: String?
    /// In how many seconds the same request may be sent again.
    package var retryAfter: Int?

    package init(
        status: HTTPResponse.Status, message: String, challenge: String? = nil, retryAfter: Int? = nil
    ) {
        self.status = status
        self.message = message
        self.challenge = challenge
        self.retryAfter = retryAfter
    }

    package static let databaseAway = APIRefusal(
        status: .serviceUnavailable, message: "the database is away; try again")

    /// What the answer says besides its body.
    package var headers: HTTPFields {
        var headers = HTTPFields()
        if let challenge = challenge ?? (status == .unauthorized ? "Bearer" : nil) {
            headers[.wwwAuthenticate] = challenge
        }
        if let retryAfter { headers[.retryAfter] = String(retryAfter) }
        return headers
    }
}
