import HTTP2
import Testing

struct EndpointTests {
    @Test(arguments: [
        ("https://api.push.apple.com", "api.push.apple.com", 443, "api.push.apple.com"),
        ("https://api.push.apple.com:2197/", "api.push.apple.com", 2197, "api.push.apple.com:2197"),
        ("HTTPS://localhost:8443", "localhost", 8443, "localhost:8443"),
        ("https://[::1]:8443", "::1", 8443, "[::1]:8443"),
        ("https://[2001:db8::1]", "2001:db8::1", 443, "[2001:db8::1]"),
    ])
    func `a URL gives host, port and authority`(url: String, host: String, port: Int, authority: String) throws {
        let endpoint = try HTTP2Endpoint(url: url)
        #expect(endpoint.host == host)
        #expect(endpoint.port == port)
        #expect(endpoint.authority == authority)
    }

    @Test(arguments: [
        "", "localhost", "http://localhost", "https://", "https://:443", "https://host:0", "https://host:65536",
        "https://host:x", "https://host/path", "https://user@host", "https://[::1", "https://[::1]x", "https://a b",
    ])
    func `other URLs are rejected and quoted`(url: String) {
        let error = #expect(throws: HTTP2Error.self) { try HTTP2Endpoint(url: url) }
        #expect("\(error as Any)".contains("“\(url)”"))
    }
}
