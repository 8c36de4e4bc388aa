import HTTPTypes

/// What a client hears of a refusal: what to do, and nothing that helps to find out what would be accepted.
extension BearerRefusal {
    var answer: APIRefusal {
        switch reason {
        case .missing:
            // Without an error code: nothing was tried (RFC 6750 §3.1).
            APIRefusal(
                status: .unauthorized, message: "send an Authorization header: Bearer <token>", challenge: "Bearer")
        case .malformed, .unknownExtension, .untrusted, .expired, .tooLongLived, .notYetValid, .wrongIssuer,
            .wrongAudience:
            APIRefusal(
                status: .unauthorized, message: "the bearer token is not accepted; get a new one and send that",
                challenge: #"Bearer error="invalid_token""#)
        case .wrongApp, .noUser, .severalApps:
            APIRefusal(
                status: .forbidden, message: "the bearer token does not speak for one user of one app here",
                challenge: #"Bearer error="insufficient_scope""#)
        case .keysAway:
            // Not 401: a client would sign its user out over it.
            APIRefusal(
                status: .serviceUnavailable, message: "bearer tokens cannot be checked now; try again later",
                retryAfter: Int(KeyRing.pause.components.seconds))
        }
    }
}
