import HTTP2

/// TLS settings of a server: its certificate and the client certificates it accepts. The minimum is TLS 1.2.
package struct HTTP2ServerTLS: Hashable, Sendable {
    package enum ClientCertificates: Hashable, Sendable {
        case ignored
        /// Requested; a presented certificate is verified against the authorities in this PEM file.
        case optional(caFile: String)
        case required(caFile: String)
    }

    /// A PEM file with the server's certificate chain.
    package var certificateFile: String
    /// A PEM file with the certificate's private key.
    package var keyFile: String
    package var clientCertificates: ClientCertificates
    /// The ALPN protocols. Other values than `h2` are for tests of a client's ALPN check.
    package var applicationProtocols: [String]

    package init(
        certificateFile: String, keyFile: String, clientCertificates: ClientCertificates = .ignored,
        applicationProtocols: [String] = ["h2"]
    ) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.clientCertificates = clientCertificates
        self.applicationProtocols = applicationProtocols
    }
}

/// The SETTINGS of a server's new connections, and its body limit.
package struct HTTP2ServerSettings: Hashable, Sendable {
    /// SETTINGS_MAX_CONCURRENT_STREAMS; nil omits it, which means no limit.
    package var maximumConcurrentStreams: Int?
    /// SETTINGS_INITIAL_WINDOW_SIZE; also the connection's window if larger than the default.
    package var initialWindowSize: Int
    /// SETTINGS_HEADER_TABLE_SIZE.
    package var headerTableSize: Int
    /// SETTINGS_MAX_HEADER_LIST_SIZE; nil omits it.
    package var maximumHeaderListSize: Int?
    /// The longest request body, in bytes. A longer one is reset with ENHANCE_YOUR_CALM before the handler sees it.
    package var maximumBodySize: Int

    package init(
        maximumConcurrentStreams: Int? = 1000, initialWindowSize: Int = 65_535, headerTableSize: Int = 4096,
        maximumHeaderListSize: Int? = nil, maximumBodySize: Int = 1 << 20
    ) {
        self.maximumConcurrentStreams = maximumConcurrentStreams
        self.initialWindowSize = initialWindowSize
        self.headerTableSize = headerTableSize
        self.maximumHeaderListSize = maximumHeaderListSize
        self.maximumBodySize = maximumBodySize
    }

    var entries: [SessionSetting] {
        var entries: [SessionSetting] = [
            .initialWindowSize(UInt32(clamping: initialWindowSize)),
            .headerTableSize(UInt32(clamping: headerTableSize)),
        ]
        if let maximumConcurrentStreams {
            entries.append(.maximumConcurrentStreams(UInt32(clamping: maximumConcurrentStreams)))
        }
        if let maximumHeaderListSize { entries.append(.maximumHeaderListSize(UInt32(clamping: maximumHeaderListSize))) }
        return entries
    }
}
