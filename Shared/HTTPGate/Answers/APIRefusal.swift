package import HTTPTypes

/// A request that is turned down, and why.
package struct APIRefusal: Error {
    /// 4xx or 5xx.
    package let status: HTTPResponse.Status
    /// A sentence for whoever asks: what is wrong and, where they can do something, what. Without what they sent.
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

    /// Nothing is wrong with the request, which may be sent again.
    package static let databaseAway = APIRefusal(
        status: .serviceUnavailable, message: "the database is away; try again", retryAfter: 2)
    /// More requests wait than the service holds. The same one may be sent again.
    package static let busy = APIRefusal(
        status: .serviceUnavailable, message: "too many requests wait for the database; try again", retryAfter: 2)
    /// The mistake is ours.
    package static let failed = APIRefusal(
        status: .internalServerError, message: "this could not be answered; the operator's log says why")

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
