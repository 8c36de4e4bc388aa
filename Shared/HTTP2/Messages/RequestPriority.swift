/// The priority among requests waiting for a stream. Local to the client: no RFC 9218 priority is sent.
package enum RequestPriority: Sendable {
    case normal
    /// After normal requests, with at least every eighth stream.
    case background
}
