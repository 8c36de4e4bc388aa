package import FoundationEssentials
package import PushProtocol

/// Encoded requests to one provider, with shared header fields stored once.
///
/// The requests to all targets of a push share a ``HeaderTemplate``. Each request adds its path, the values of
/// ``HeaderTemplate/perRequestFields`` and its body. A ``ProviderCodec`` writes into it:
///
///     batch.begin(
///         HeaderTemplate(shared: [ProviderHeader("apns-topic", topic)], perRequestFields: ["apns-id"]))
///     batch.write("/3/device/"); batch.write(token); batch.endValue()
///     batch.write(id); batch.endValue()
///     batch.endRequest(body: body)
package struct ProviderRequestBatch: Sendable {
    /// The header fields that requests share, and the names of the others.
    ///
    /// A class, because codecs keep templates that do not depend on a push.
    package final class HeaderTemplate: Sendable {
        package let shared: [ProviderHeader]
        /// The names of the fields with a value for each request. Sent never-indexed, since such values never repeat.
        package let perRequestFields: [StaticString]

        package init(shared: [ProviderHeader], perRequestFields: [StaticString] = []) {
            self.shared = shared
            self.perRequestFields = perRequestFields
        }
    }

    package struct RequestEntry: Sendable {
        package let template: Int
        /// The body as first written; see `body(of:at:)`.
        package let body: [UInt8]
        /// The index of its first value in `ends`.
        fileprivate let firstValue: Int
        /// The TTL in the body, if any.
        fileprivate let countdown: TTLCountdown?
        /// Added to the offsets of `countdown`.
        fileprivate let shift: Int
    }

    package private(set) var templates: [HeaderTemplate] = []
    package private(set) var entries: [RequestEntry] = []
    /// The path of all requests; `nil` if each request has its own.
    package let path: String?
    /// Requests of the bulk lane are sent after other requests.
    package let lane: Lane
    /// The paths and header values of all requests, concatenated.
    private var text: [UInt8] = []
    private var ends: [Int] = []
    private var firstValue = 0

    /// - Parameter requests: the number of requests to reserve memory for.
    package init(path: String? = nil, lane: Lane = .interactive, expecting requests: Int = 0) {
        self.path = path
        self.lane = lane
        entries.reserveCapacity(requests)
        ends.reserveCapacity(requests * 4)
        text.reserveCapacity(requests * 192)
    }

    package var count: Int { entries.count }

    /// Uses `template` for the requests that follow.
    package mutating func begin(_ template: HeaderTemplate) {
        if templates.last !== template { templates.append(template) }
    }

    package mutating func write(_ value: String) {
        var value = value
        value.withUTF8 { text.append(contentsOf: $0) }
    }

    /// Writes `id` in canonical form, in lower case.
    package mutating func write(_ id: UUID) { Hexadecimal.append(id, .lower, to: &text) }

    package mutating func write(_ number: Int64) {
        number.withDecimalDigits { text.append(contentsOf: $0) }
    }

    /// Ends a path or a header value.
    package mutating func endValue() { ends.append(text.count) }

    /// Ends a request, after its path and its values.
    ///
    /// - Parameters:
    ///   - body: the request's body.
    ///   - countdown: the TTL in the body, if any.
    ///   - shift: added to the offsets of `countdown`.
    package mutating func endRequest(body: [UInt8], countdown: TTLCountdown? = nil, shift: Int = 0) {
        assert(ends.count - firstValue == templates[templates.count - 1].perRequestFields.count + (path == nil ? 1 : 0))
        entries.append(
            RequestEntry(
                template: templates.count - 1, body: body, firstValue: firstValue, countdown: countdown, shift: shift))
        firstValue = ends.count
    }

    /// The body of the request at `index`, with the TTL at the time of day `now`.
    package func body(of index: Int, at now: () -> Timestamp) -> [UInt8] {
        let entry = entries[index]
        guard let countdown = entry.countdown else { return entry.body }
        return countdown.body(entry.body, shift: entry.shift, at: now())
    }

    /// Calls `read` with the path of the request at `index`, in a batch without a shared path.
    package func withPath<R>(of index: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        withText(entries[index].firstValue, read)
    }

    /// Calls `read` with a header value, counted from 0, of the request at `index`.
    package func withValue<R>(_ value: Int, of index: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        withText(entries[index].firstValue + value + (path == nil ? 1 : 0), read)
    }

    private func withText<R>(_ place: Int, _ read: (UnsafeRawBufferPointer) -> R) -> R {
        let start = place == 0 ? 0 : ends[place - 1]
        return text.withUnsafeBytes { read(UnsafeRawBufferPointer(rebasing: $0[start..<ends[place]])) }
    }
}

extension ProviderRequestBatch {
    /// The decoded request at `index`, for tests.
    package subscript(index: Int) -> ProviderRequest {
        let template = templates[entries[index].template]
        let fields = template.perRequestFields.enumerated().map { number, name in
            ProviderHeader(
                "\(name)", withValue(number, of: index) { String(decoding: $0, as: UTF8.self) }, neverIndexed: true)
        }
        return ProviderRequest(
            path: path ?? withPath(of: index) { String(decoding: $0, as: UTF8.self) },
            headers: fields + template.shared, body: entries[index].body)
    }
}
