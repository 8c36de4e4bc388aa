import HTTPTypes

/// The response for a rejected token. It contains the next step and no detail that helps to forge a token.
extension BearerTokenError {
    var answer: APIError {
        switch reason {
        case .missing:
            // No error code: the request carried no credentials (RFC 6750 §3.1).
            APIError(
                status: .unauthorized, message: "send an Authorization header: Bearer <token>", challenge: "Bearer")
        case .malformed, .unknownExtension, .untrusted, .expired, .tooLongLived, .notYetValid, .wrongIssuer,
            .wrongAudience:
            APIError(
                status: .unauthorized, message: "the bearer token is not accepted; get a new one and send that",
                challenge: #"Bearer error="invalid_token""#)
        case .wrongApp, .noUser, .publisherToken, .ambiguousApp:
            APIError(
                status: .forbidden, message: "the bearer token does not speak for one user of one app here",
                challenge: #"Bearer error="insufficient_scope""#)
        case .noScope:
            APIError(
                status: .forbidden,
                message: "the bearer token allows no publishing; its scope needs events:publish or notifications:send",
                challenge: #"Bearer error="insufficient_scope""#)
        case .keysUnavailable:
            // Not 401: a client would sign its user out.
            APIError(
                status: .serviceUnavailable, message: "bearer tokens cannot be checked now; try again later",
                retryAfter: Int(KeyCache.pause.components.seconds))
        }
    }
}
