import PushProtocol

/// One header field. Its name is in lower case.
struct Header: Hashable, Sendable {
    let name: String
    let value: String
    /// Whether HPACK sent it as a never-indexed literal. Decoding keeps no other detail of the representation.
    let neverIndexed: Bool

    init(_ name: String, _ value: String, neverIndexed: Bool = false) {
        self.name = name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}

struct ProviderRequest: Sendable {
    /// Unique for the life of the simulator.
    let connection: Int
    let stream: Int32
    let method: String
    let path: String
    /// In order of arrival, without pseudo-headers.
    let headers: [Header]
    let body: [UInt8]
    let receivedAt: Timestamp
    /// Whether the client presented a certificate that the port trusts.
    var hasClientCertificate = false

    subscript(header: String) -> String? { headers.first { $0.name == header }?.value }
}
