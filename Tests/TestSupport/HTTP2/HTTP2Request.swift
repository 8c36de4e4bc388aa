package import HTTP2

/// One request; `:scheme` and `:authority` come from the client's endpoint.
package struct HTTP2Request: Hashable, Sendable {
    package var method: String
    /// Path and query, starting with a slash.
    package var path: String
    /// The fields after the pseudo-headers, in this order. Names are not checked.
    package var headers: [HTTP2Header]
    package var body: [UInt8]

    package init(method: String = "POST", path: String, headers: [HTTP2Header] = [], body: [UInt8] = []) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
    }
}

extension HTTP2Request: HTTP2Requests {
    package var count: Int { 1 }

    package func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", method)
        fields.append(":path", path, neverIndexed: true)
        for header in headers { fields.append(header.name, header.value, neverIndexed: header.neverIndexed) }
    }

    package func body(_ index: Int) -> [UInt8] { body }
}

extension HTTP2Client {
    /// Sends one request.
    package func execute(_ request: HTTP2Request, deadline: Duration) async throws(HTTP2Error) -> HTTP2Response {
        try await execute(all: request, deadline: deadline)[0].get()
    }
}

extension HTTP2Response {
    /// The decoded fields.
    package var headers: [HTTP2Header] {
        let texts = fields.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        return stride(from: 0, to: texts.count - 1, by: 2).map { HTTP2Header(name: texts[$0], value: texts[$0 + 1]) }
    }
}

extension HTTP2Error {
    /// Whether the request can be resent without the risk of being processed twice.
    package var isSafeToResend: Bool {
        switch self {
        case .notProcessed, .closed, .deadlineExceeded(written: false), .cancelled(written: false): true
        case .ambiguous, .deadlineExceeded(written: true), .cancelled(written: true): false
        case .invalidRequest, .invalidConfiguration: false
        }
    }
}

extension [HTTP2Header] {
    /// The first value of a field. The name is in lower case.
    package subscript(name: String) -> String? { first { $0.name == name }?.value }

    /// All values of a field, in order. The name is in lower case.
    package func values(of name: String) -> [String] { filter { $0.name == name }.map(\.value) }
}
