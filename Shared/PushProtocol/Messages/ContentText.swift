/// A content as it stands in a message, passed over once and found to be what a ``Content`` is read from: where each
/// member is, and nothing made of them. A sender copies most of them as they are.
///
/// Only contents as our own writers write them (``CanonicalScan``) that lay nothing over a rendering.
package final class ContentText: Sendable {
    /// The members whose text is copied: each a string, but for `data`, which is an object.
    package struct Members: Sendable {
        package fileprivate(set) var title = Place.none
        package fileprivate(set) var subtitle = Place.none
        package fileprivate(set) var body = Place.none
        package fileprivate(set) var sound = Place.none
        package fileprivate(set) var category = Place.none
        package fileprivate(set) var thread = Place.none
        package fileprivate(set) var deepLink = Place.none
        package fileprivate(set) var image = Place.none
        package fileprivate(set) var interruptionLevel = Place.none
        package fileprivate(set) var collapseKey = Place.none
        package fileprivate(set) var data = Place.none
    }

    /// Where a value stands in the message; nowhere, when the content does not have it.
    package struct Place: Sendable {
        private let start: UInt32
        private let end: UInt32

        package static let none = Place(0..<0)

        fileprivate init(_ range: Range<Int>) {
            (start, end) = (UInt32(truncatingIfNeeded: range.lowerBound), UInt32(truncatingIfNeeded: range.upperBound))
        }

        package var isAbsent: Bool { end == 0 }
        package var count: Int { Int(end - start) }
        package var range: Range<Int> { Int(start)..<Int(end) }
    }

    /// The message.
    private let message: [UInt8]
    private let whole: Range<Int>
    package let members: Members
    package let badge: Int?
    package let silent: Bool
    package let interruptionLevel: InterruptionLevel?
    /// Whether the app's data has a member `aps`, or a `deep_link` of its own.
    package let hasReservedData: Bool
    /// Where in `data` a member `deep_link` belongs by its name: before that byte of the message.
    package let placeOfLink: Int

    /// Reads the object at the place of `scan`, in `message`.
    init(_ scan: inout CanonicalScan, in message: [UInt8]) throws(JSONReader.Unusual) {
        var found = Members()
        let start = scan.place
        var members = try OrderedMembers(&scan)
        try members.refuse(#""apns":"#, &scan)
        badge = try members.find(#""badge":"#, &scan) ? try scan.optionalInteger().map(Int.init) : nil
        if try members.find(#""body":"#, &scan) { found.body = try Place(text: &scan) }
        if try members.find(#""category":"#, &scan) { found.category = try Place(text: &scan) }
        if try members.find(#""collapseKey":"#, &scan) { found.collapseKey = try Place(text: &scan) }
        var data = Data()
        if try members.find(#""data":"#, &scan) { data = try Data(&scan) }
        if try members.find(#""deepLink":"#, &scan) { found.deepLink = try Place(text: &scan) }
        try members.refuse(#""fcm":"#, &scan)
        if try members.find(#""image":"#, &scan) { found.image = try Place(text: &scan) }
        interruptionLevel =
            if try members.find(#""interruptionLevel":"#, &scan) { try found.readInterruptionLevel(&scan) } else { nil }
        try members.require(#""silent":"#, &scan)
        silent = try scan.bool()
        if try members.find(#""sound":"#, &scan) { found.sound = try Place(text: &scan) }
        if try members.find(#""subtitle":"#, &scan) { found.subtitle = try Place(text: &scan) }
        if try members.find(#""thread":"#, &scan) { found.thread = try Place(text: &scan) }
        if try members.find(#""title":"#, &scan) { found.title = try Place(text: &scan) }
        try members.end(&scan)
        found.data = data.place
        self.message = message
        whole = start..<scan.place
        self.members = found
        hasReservedData = data.isReserved
        placeOfLink = data.placeOfLink
    }

    /// What is to know of the app's data.
    private struct Data {
        var place = Place.none
        var isReserved = false
        var placeOfLink = 0

        init() {}

        init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
            guard try !scan.takesNull() else { return }
            var (isReserved, placeOfLink) = (false, 0)
            let (start, names) = (scan.place, scan)
            try scan.members { (name) throws(JSONReader.Unusual) in
                if names.isText("aps", in: name) || names.isText("deep_link", in: name) { isReserved = true }
                if placeOfLink == 0, !names.isBefore(name, "deep_link") { placeOfLink = name.lowerBound - 1 }
            }
            place = Place(start..<scan.place)
            self.isReserved = isReserved
            self.placeOfLink = placeOfLink == 0 ? scan.place - 1 : placeOfLink
        }
    }

    /// The content as a value.
    package var content: Content {
        guard let content = bytes({ Content.read(UnsafeBufferPointer(rebasing: $0[whole])) }) else {
            preconditionFailure("what was passed over is a content")
        }
        return content
    }

    /// Hands out the message that the members' places are in.
    package func bytes<R>(_ read: (UnsafeBufferPointer<UInt8>) -> R) -> R { message.withUnsafeBufferPointer(read) }
}

extension ContentText.Place {
    /// Takes a string, or `null`.
    fileprivate init(text scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        self = try scan.takesNull() ? .none : ContentText.Place(try scan.string())
    }
}

extension ContentText.Members {
    fileprivate mutating func readInterruptionLevel(
        _ scan: inout CanonicalScan
    ) throws(JSONReader.Unusual) -> InterruptionLevel? {
        let start = scan.place
        guard let level = try scan.optionalWord(InterruptionLevel.self) else { return nil }
        interruptionLevel = ContentText.Place(start..<scan.place)
        return level
    }
}
