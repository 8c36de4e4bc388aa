internal import CCurl

extension FetchError.Code {
    /// Maps a libcurl code; codes not listed are failures of an open connection.
    init(_ code: CURLcode) {
        self =
            switch code {
            case CURLE_URL_MALFORMAT: .invalidRequest
            case CURLE_SSL_CACERT_BADFILE: .invalidConfiguration
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT: .unreachable
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
                CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
                .untrusted
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            default: .broken
            }
    }
}
