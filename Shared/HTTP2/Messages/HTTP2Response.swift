/// A complete response of any status.
package struct HTTP2Response: Hashable, Sendable {
    package let status: Int
    /// The fields after `:status`, trailers last, as name, NUL, value, NUL. A field cannot contain NUL
    /// (RFC 9113 §8.2.1). Kept as bytes, since callers read at most one or two fields.
    package let fields: [UInt8]
    /// The body; at most `maximumResponseBody` bytes.
    package let body: [UInt8]
    /// The time from opening the last stream to reading the end of the response; `nil` if the response was cut.
    package let elapsed: Duration?
}
