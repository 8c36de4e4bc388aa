import PushProtocol

/// One header field, its name in lower case.
struct Header: Hashable, Sendable {
    let name: String
    let value: String
    /// Whether it came as a never-indexed literal: all of the HPACK form that survives decoding.
    let neverIndexed: Bool

    init(_ name: String, _ value: String, neverIndexed: Bool = false) {
        self.name = name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}

/// One request as it reached a provider, whole.
struct ProviderRequest: Sendable {
    /// Which connection it came on: unique for the life of the simulator.
    let connection: Int
    let stream: Int32
    let method: String
    let path: String
    /// In the order they came, without pseudo-headers.
    let headers: [Header]
    let body: [UInt8]
    let receivedAt: Timestamp
    /// Whether the client proved itself by a certificate that the port trusts.
    var hasClientCertificate = false

    /// The first value of a header.
    subscript(header: String) -> String? { headers.first { $0.name == header }?.value }
}
