/// How a server identifies itself and what it asks of clients. TLS 1.2 is the least it speaks.
package struct HTTP2ServerTLS: Hashable, Sendable {
    package enum ClientCertificates: Hashable, Sendable {
        case ignored
        /// Asked for; verified against the authorities in this PEM file when there is one.
        case optional(caFile: String)
        case required(caFile: String)
    }

    /// A PEM file with the server's certificate and the chain up to its authority.
    package var certificateFile: String
    /// A PEM file with the certificate's private key.
    package var keyFile: String
    package var clientCertificates: ClientCertificates
    /// What ALPN may settle on. Only for a server that must refuse `h2` to test a client's manners.
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

/// What a server tells every new connection, and the bounds it keeps.
package struct HTTP2ServerSettings: Hashable, Sendable {
    /// SETTINGS_MAX_CONCURRENT_STREAMS; nil leaves it unsaid, which means no limit.
    package var maximumConcurrentStreams: Int?
    /// SETTINGS_INITIAL_WINDOW_SIZE, and the connection's window as well when it is larger than the default.
    package var initialWindowSize: Int
    /// SETTINGS_HEADER_TABLE_SIZE.
    package var headerTableSize: Int
    /// SETTINGS_MAX_HEADER_LIST_SIZE; nil leaves it unsaid.
    package var maximumHeaderListSize: Int?
    /// A request with a longer body is reset with ENHANCE_YOUR_CALM and never reaches the handler.
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
