/// Requests submitted and awaited together: one stream each, and one thread hop each way for all.
package protocol HTTP2Requests: Sendable {
    var count: Int { get }

    /// Writes `:method`, `:path` and the fields of the request at `index`, in that order. The client adds `:scheme` and
    /// `:authority`. Called on the client's event loop for each send, so it must be quick.
    func write(_ index: Int, to fields: inout HeaderArena)

    /// Returns the whole body of the request at `index`; empty for none. Called when the request gets a stream, so a
    /// body may depend on the time.
    func body(_ index: Int) -> [UInt8]

    /// Returns whether the request at `index` may still be sent. Called on the client's event loop each time before the
    /// request gets a stream. If false, the request ends as `notProcessed` with the code `withheld`.
    func mayStart(_ index: Int) -> Bool

    /// The priority among requests waiting for a stream.
    var priority: RequestPriority { get }

    /// Returns whether waiting requests are still sent after a response with `status`. If false, they end as
    /// `notProcessed` with the code `withdrawn`.
    func shouldContinue(after status: Int) -> Bool
}

extension HTTP2Requests {
    package var priority: RequestPriority { .normal }
    package func shouldContinue(after status: Int) -> Bool { true }
    package func mayStart(_ index: Int) -> Bool { true }
}

package typealias HTTP2Result = Result<HTTP2Response, HTTP2Error>
