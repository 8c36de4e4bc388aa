internal import CCurl

/// A request's URL, validated with libcurl's own parser: with two different parsers, the validated host could differ
/// from the one connected to.
struct FetchTarget: Sendable {
    let url: String
    let isPlain: Bool
    /// For error messages.
    let origin: String

    /// - Parameter allowsPlainHTTP: whether `http` is allowed for other than loopback addresses.
    init(_ url: String, allowsPlainHTTP: Bool = false) throws(FetchError) {
        guard let parsed = ParsedURL.parse(url) else {
            throw FetchError(code: .invalidRequest, origin: "request", detail: "the URL is malformed")
        }
        let scheme = parsed.part(CURLUPART_SCHEME) ?? ""
        let host = parsed.part(CURLUPART_HOST) ?? ""
        origin = "\(scheme)://\(host)" + (parsed.part(CURLUPART_PORT).map { ":\($0)" } ?? "")
        guard parsed.part(CURLUPART_USER) == nil, parsed.part(CURLUPART_PASSWORD) == nil else {
            throw FetchError(code: .invalidRequest, origin: origin, detail: "the URL must not contain credentials")
        }
        switch scheme {
        case "https": isPlain = false
        case "http" where allowsPlainHTTP || Self.isLoopback(host): isPlain = true
        case "http":
            throw FetchError(
                code: .invalidRequest, origin: origin, detail: "http is allowed for loopback addresses only; use https")
        default:
            throw FetchError(code: .invalidRequest, origin: origin, detail: "the scheme must be https")
        }
        self.url = url
    }

    /// Whether a host is loopback. libcurl resolves `localhost` to loopback itself (since 7.77).
    private static func isLoopback(_ host: String) -> Bool {
        if host.lowercased() == "localhost" || host == "[::1]" { return true }
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
    }
}

/// The sole owner of libcurl's parsed URL.
private struct ParsedURL: ~Copyable {
    private let pointer: OpaquePointer

    private init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { curl_url_cleanup(pointer) }

    static func parse(_ url: String) -> ParsedURL? {
        // libcurl would truncate the URL at an embedded NUL.
        guard !url.utf8.contains(0), let pointer = curl_url() else { return nil }
        let parsed = ParsedURL(pointer)
        guard curl_url_set(pointer, CURLUPART_URL, url, 0) == CURLUE_OK else { return nil }
        return parsed
    }

    borrowing func part(_ part: CURLUPart) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(pointer, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}

extension FetchRequest {
    /// Rejects malformed methods and headers. A line break in a header would start another header or request.
    func checkHeaders(origin: String) throws(FetchError) {
        let token = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        guard !method.isEmpty, method.utf8.allSatisfy(token.contains) else {
            throw FetchError(code: .invalidRequest, origin: origin, detail: "the method is not an HTTP token")
        }
        for (name, value) in headers {
            guard !name.isEmpty, name.utf8.allSatisfy(token.contains) else {
                throw FetchError(code: .invalidRequest, origin: origin, detail: "a header's name is not an HTTP token")
            }
            guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw FetchError(
                    code: .invalidRequest, origin: origin, detail: "header \(name) contains a control character")
            }
        }
    }
}
