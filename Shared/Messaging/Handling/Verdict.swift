/// What a handler decided about one message.
package struct Verdict: Sendable {
    package var disposition: Disposition
    /// Published mandatory and persistent, and confirmed by the broker, before the disposition is carried out. What
    /// several verdicts of a batch have in common is published once.
    package var outbound: [Outbound]
    /// When only a part of the message is left to do: the body that a retry or dead letter carries in place of the one
    /// that came in, such as a push with the targets that were not answered yet. `nil` keeps the body as it came.
    package var remainder: [UInt8]?

    package init(_ disposition: Disposition, outbound: [Outbound] = [], remainder: [UInt8]? = nil) {
        self.disposition = disposition
        self.outbound = outbound
        self.remainder = remainder
    }

    /// Whether nothing is left of the message once its outbound is confirmed.
    var isDone: Bool { if case .done = disposition { true } else { false } }

    package static var done: Verdict { Verdict(.done) }

    package static func done(_ outbound: [Outbound]) -> Verdict { Verdict(.done, outbound: outbound) }
}
