/// A handler's decision about one message, with the messages to publish because of it.
package struct Verdict: Sendable {
    package var disposition: Disposition
    /// Published as mandatory and persistent, and confirmed, before the disposition is executed. An outbound shared by
    /// several verdicts is published once.
    package var outbound: [Outbound]
    /// The body of the retry copy or dead letter when a part of the message is done, such as a push with its remaining
    /// targets. `nil` keeps the received body.
    package var remainder: [UInt8]?

    package init(_ disposition: Disposition, outbound: [Outbound] = [], remainder: [UInt8]? = nil) {
        self.disposition = disposition
        self.outbound = outbound
        self.remainder = remainder
    }

    /// Whether the message only needs an acknowledgement after its outbound is confirmed.
    var isDone: Bool { if case .done = disposition { true } else { false } }

    package static var done: Verdict { Verdict(.done) }

    package static func done(_ outbound: [Outbound]) -> Verdict { Verdict(.done, outbound: outbound) }
}
