package import FoundationEssentials
package import PushProtocol

/// Requests to one provider in the form in which they go on the wire: what many of them share stands once.
///
/// A *letter* is what the requests to all targets of a push have in common. Each request adds its path, its own value
/// of each of the letter's own fields, and its body. Built by a ``PushWire``, which writes straight into it:
///
///     batch.begin(Letter(shared: [ProviderHeader("apns-topic", topic)], own: ["apns-id"]))
///     batch.write("/3/device/"); batch.write(token); batch.endValue()
///     batch.write(id); batch.endValue()
///     batch.endRequest(body: body)
package struct RequestBatch: Sendable {
    /// A class, since wires keep the letters that do not depend on a push.
    package final class Letter: Sendable {
        package let shared: [ProviderHeader]
        /// The names of the fields of which each request has a value of its own. Such values never come again, so
        /// HPACK must not put them into its table.
        package let own: [StaticString]

        package init(shared: [ProviderHeader], own: [StaticString] = []) {
            self.shared = shared
            self.own = own
        }
    }

    package struct Entry: Sendable {
        /// The index of its letter.
        package let letter: Int
        /// The body as it was written; see ``RequestBatch/body(of:at:)``.
        package let body: [UInt8]
        /// Where its values begin in `ends`.
        fileprivate let firstValue: Int
        /// How long its push still has, where the body says so.
        fileprivate let countdown: Countdown?
        /// The bytes of the body ahead of the part that the places of `countdown` are counted in.
        fileprivate let shift: Int
    }

    package private(set) var letters: [Letter] = []
    package private(set) var entries: [Entry] = []
    /// The path of every request; `nil` where each has its own.
    package let path: String?
    /// Others' requests go before the bulk lane's.
    package let lane: Lane
    /// The own path, if any, and then the own values of each request, one after the other.
    private var text: [UInt8] = []
    private var ends: [Int] = []
    private var firstValue = 0

    /// - Parameter requests: for how many to set room aside.
    package init(path: String? = nil, lane: Lane = .interactive, expecting requests: Int = 0) {
        self.path = path
        self.lane = lane
        entries.reserveCapacity(requests)
        ends.reserveCapacity(requests * 4)
        text.reserveCapacity(requests * 192)
    }

    package var count: Int { entries.count }

    /// Starts a letter, unless it is the one that was begun last: the requests that follow are copies of it.
    package mutating func begin(_ letter: Letter) {
        if letters.last !== letter { letters.append(letter) }
    }

    package mutating func write(_ value: String) {
        var value = value
        value.withUTF8 { text.append(contentsOf: $0) }
    }

    /// Writes `id` in the canonical form, in lower case.
    package mutating func write(_ id: UUID) { Hexadecimal.append(id, .lower, to: &text) }

    package mutating func write(_ number: Int64) {
        JSONOutput.append(number, to: &text)
    }

    /// Ends an own path or an own value.
    package mutating func endValue() { ends.append(text.count) }

    /// Ends a request of which the own path and every own value were written.
    ///
    /// - Parameters:
    ///   - countdown: how long the push still has, where the body says so.
    ///   - shift: how much later in the body than in `countdown` each place is.
    package mutating func endRequest(body: [UInt8], countdown: Countdown? = nil, shift: Int = 0) {
        assert(ends.count - firstValue == letters[letters.count - 1].own.count + (path == nil ? 1 : 0))
        entries.append(
            Entry(
                letter: letters.count - 1, body: body, firstValue: firstValue, countdown: countdown, shift: shift))
        firstValue = ends.count
    }

    /// The body of the request at `index` as it has to be at the time of day `now`, which may be seconds after it was
    /// written.
    package func body(of index: Int, at now: () -> Timestamp) -> [UInt8] {
        let entry = entries[index]
        guard let countdown = entry.countdown else { return entry.body }
        return countdown.body(entry.body, shift: entry.shift, at: now())
    }

    /// Hands out the own path of the request at `index`, of a batch without one for all.
    package func withPath<R>(of index: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        withText(entries[index].firstValue, read)
    }

    /// Hands out an own value, from 0, of the request at `index`.
    package func withValue<R>(_ value: Int, of index: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        withText(entries[index].firstValue + value + (path == nil ? 1 : 0), read)
    }

    private func withText<R>(_ place: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        let start = place == 0 ? 0 : ends[place - 1]
        return text.withUnsafeBytes { read(UnsafeRawBufferPointer(rebasing: $0[start..<ends[place]])) }
    }
}

extension RequestBatch {
    /// The request at `index`, read out: for tests and for providers that live in memory.
    package subscript(index: Int) -> ProviderRequest {
        let letter = letters[entries[index].letter]
        let own = letter.own.enumerated().map { number, name in
            ProviderHeader(
                "\(name)", withValue(number, of: index) { String(decoding: $0, as: UTF8.self) }, neverIndexed: true)
        }
        return ProviderRequest(
            path: path ?? withPath(of: index) { String(decoding: $0, as: UTF8.self) }, headers: own + letter.shared,
            body: entries[index].body)
    }
}
