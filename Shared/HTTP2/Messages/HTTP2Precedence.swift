/// Which of the requests that wait for a stream goes next. Nothing of it is sent: what RFC 9218 calls urgency is the server's
/// affair.
package enum HTTP2Precedence: Sendable {
    case normal
    /// After those, but for one in eight.
    case background
}
