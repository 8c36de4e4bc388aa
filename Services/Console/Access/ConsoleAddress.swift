import FoundationEssentials

/// The address that browsers use: scheme, host and port.
struct ConsoleAddress: Hashable, Sendable {
    /// `https://console.example.com`, without a slash at the end.
    let origin: String
    /// `console.example.com` or `127.0.0.1:8083`, as in the header `Host`.
    let authority: String
    let isSecure: Bool
    let isLoopback: Bool

    /// Returns `nil` unless the text is an absolute URL with a host and no path.
    init?(_ text: String) {
        guard let url = URL(string: text), let scheme = url.scheme, let host = url.host, !host.isEmpty,
            ["", "/"].contains(url.path), url.query == nil, url.user == nil
        else { return nil }
        isSecure = scheme == "https"
        let named = host.contains(":") ? "[\(host)]" : host
        authority = named + (url.port.map { ":\($0)" } ?? "")
        origin = "\(scheme)://\(authority)"
        isLoopback = host == "localhost" || host == "::1" || host == "127.0.0.1"
    }
}
