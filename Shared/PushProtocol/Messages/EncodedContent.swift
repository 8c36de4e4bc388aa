/// A content left encoded, with the ranges of its members. Senders copy most members unchanged.
///
/// Supports contents in canonical form, without overrides.
package final class EncodedContent: Sendable {
    /// The copied members: strings, except `data`, which is an object.
    package struct Members: Sendable {
        package fileprivate(set) var title = FieldRange.none
        package fileprivate(set) var subtitle = FieldRange.none
        package fileprivate(set) var body = FieldRange.none
        package fileprivate(set) var sound = FieldRange.none
        package fileprivate(set) var category = FieldRange.none
        package fileprivate(set) var thread = FieldRange.none
        package fileprivate(set) var deepLink = FieldRange.none
        package fileprivate(set) var image = FieldRange.none
        package fileprivate(set) var interruptionLevel = FieldRange.none
        package fileprivate(set) var collapseKey = FieldRange.none
        package fileprivate(set) var data = FieldRange.none
    }

    /// A value's range in the message; empty when the content does not have it.
    package struct FieldRange: Sendable {
        private let start: UInt32
        private let end: UInt32

        package static let none = FieldRange(0..<0)

        fileprivate init(_ range: Range<Int>) {
            (start, end) = (UInt32(truncatingIfNeeded: range.lowerBound), UInt32(truncatingIfNeeded: range.upperBound))
        }

        package var isAbsent: Bool { end == 0 }
        package var count: Int { Int(end - start) }
        package var range: Range<Int> { Int(start)..<Int(end) }
    }

    /// The whole message body.
    private let message: [UInt8]
    private let whole: Range<Int>
    package let members: Members
    package let badge: Int?
    package let silent: Bool
    package let interruptionLevel: InterruptionLevel?
    /// Whether `data` has a member `aps` or `deep_link`.
    package let hasReservedData: Bool
    /// The offset in the message before which a member `deep_link` sorts in `data`.
    package let deepLinkOffset: Int

    /// Scans the object at the reader's position in `message`.
    init(_ scan: inout JSONReader, in message: [UInt8]) throws(JSONReader.Unreadable) {
        var found = Members()
        let start = scan.position
        var members = try SortedObjectReader(&scan)
        try members.requireAbsent(#""apns":"#, &scan)
        badge = try members.find(#""badge":"#, &scan) ? try scan.optionalInteger().map(Int.init) : nil
        if try members.find(#""body":"#, &scan) { found.body = try FieldRange(text: &scan) }
        if try members.find(#""category":"#, &scan) { found.category = try FieldRange(text: &scan) }
        if try members.find(#""collapseKey":"#, &scan) { found.collapseKey = try FieldRange(text: &scan) }
        var data = AppData()
        if try members.find(#""data":"#, &scan) { data = try AppData(&scan) }
        if try members.find(#""deepLink":"#, &scan) { found.deepLink = try FieldRange(text: &scan) }
        try members.requireAbsent(#""fcm":"#, &scan)
        if try members.find(#""image":"#, &scan) { found.image = try FieldRange(text: &scan) }
        interruptionLevel =
            if try members.find(#""interruptionLevel":"#, &scan) { try found.readInterruptionLevel(&scan) } else { nil }
        try members.require(#""silent":"#, &scan)
        silent = try scan.bool()
        if try members.find(#""sound":"#, &scan) { found.sound = try FieldRange(text: &scan) }
        if try members.find(#""subtitle":"#, &scan) { found.subtitle = try FieldRange(text: &scan) }
        if try members.find(#""thread":"#, &scan) { found.thread = try FieldRange(text: &scan) }
        if try members.find(#""title":"#, &scan) { found.title = try FieldRange(text: &scan) }
        try members.requireAbsent(#""web":"#, &scan)
        try members.end(&scan)
        found.data = data.range
        self.message = message
        whole = start..<scan.position
        self.members = found
        hasReservedData = data.isReserved
        deepLinkOffset = data.deepLinkOffset
    }

    /// The scan result for `data`.
    private struct AppData {
        var range = FieldRange.none
        var isReserved = false
        var deepLinkOffset = 0

        init() {}

        init(_ scan: inout JSONReader) throws(JSONReader.Unreadable) {
            guard try !scan.consumeNull() else { return }
            var (isReserved, deepLinkOffset) = (false, 0)
            let (start, names) = (scan.position, scan)
            try scan.canonicalMembers { (name) throws(JSONReader.Unreadable) in
                if names.isText("aps", in: name) || names.isText("deep_link", in: name) { isReserved = true }
                if deepLinkOffset == 0, !names.isBefore(name, "deep_link") { deepLinkOffset = name.lowerBound - 1 }
            }
            range = FieldRange(start..<scan.position)
            self.isReserved = isReserved
            self.deepLinkOffset = deepLinkOffset == 0 ? scan.position - 1 : deepLinkOffset
        }
    }

    package var content: Content {
        withBytes { bytes in
            var reader = JSONReader(bytes, from: whole.lowerBound)
            guard let content = try? Content(&reader) else { preconditionFailure("the scanned content is valid") }
            return content
        }
    }

    /// Calls `read` with the bytes that the ranges refer to.
    package func withBytes<R>(_ read: (UnsafeBufferPointer<UInt8>) -> R) -> R { message.withUnsafeBufferPointer(read) }
}

extension EncodedContent.FieldRange {
    fileprivate init(text scan: inout JSONReader) throws(JSONReader.Unreadable) {
        self = try scan.consumeNull() ? .none : EncodedContent.FieldRange(try scan.canonicalString())
    }
}

extension EncodedContent.Members {
    fileprivate mutating func readInterruptionLevel(
        _ scan: inout JSONReader
    ) throws(JSONReader.Unreadable) -> InterruptionLevel? {
        let start = scan.position
        guard let level = try scan.optionalEnumValue(InterruptionLevel.self) else { return nil }
        interruptionLevel = EncodedContent.FieldRange(start..<scan.position)
        return level
    }
}
