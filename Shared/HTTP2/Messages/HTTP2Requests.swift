/// Requests that are sent together and waited for together: as many streams, one crossing of threads each way.
package protocol HTTP2Requests: Sendable {
    var count: Int { get }

    /// Writes `:method`, `:path` and the fields of the request at `index`, in that order; `:scheme` and `:authority`
    /// are the client's. Called on the client's event loop each time that the request is sent, so it must be quick.
    func write(_ index: Int, to fields: inout HeaderArena)

    /// The whole body of the request at `index`; empty for none. Called when the request gets a stream, so that a body
    /// may depend on the time.
    func body(_ index: Int) -> [UInt8]

    /// Whether the request at `index` may still be sent. Asked on the client's event loop right before the request gets a
    /// stream, each time that it gets one. A refused request ends as `notProcessed` with the code `withheld`.
    func mayStart(_ index: Int) -> Bool

    /// Whether they go before others that wait for a stream.
    var precedence: HTTP2Precedence { get }

    /// Whether requests that still wait for a stream shall be sent although one was answered with `status`. The others
    /// end as `notProcessed` with the code `withdrawn`.
    func goesOn(after status: Int) -> Bool
}

extension HTTP2Requests {
    package var precedence: HTTP2Precedence { .normal }
    package func goesOn(after status: Int) -> Bool { true }
    package func mayStart(_ index: Int) -> Bool { true }
}

/// What became of one of them.
package typealias HTTP2Answer = Result<HTTP2Response, HTTP2Error>

/// One request of its own.
extension HTTP2Request: HTTP2Requests {
    package var count: Int { 1 }

    package func write(_ index: Int, to fields: inout HeaderArena) {
        fields.append(":method", method)
        fields.append(":path", path, neverIndexed: true)
        for header in headers { fields.append(header.name, header.value, neverIndexed: header.neverIndexed) }
    }

    package func body(_ index: Int) -> [UInt8] { body }
}
