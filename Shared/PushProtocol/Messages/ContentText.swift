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
        fileprivate var seen: UInt32 = 0
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
        var members = Members()
        var badge: Int?
        var silent: Bool?
        var interruptionLevel: InterruptionLevel?
        var hasReservedData = false
        var placeOfLink = 0
        let start = scan.place
        try scan.open(UInt8(ascii: "{"))
        repeat {
            let name = try scan.name()
            // No two members have the same length and first letter.
            switch (name.count, scan.bytes[name.lowerBound]) {
            case (5, UInt8(ascii: "t")): members.title = try members.string(0, "title", name, &scan)
            case (8, UInt8(ascii: "s")): members.subtitle = try members.string(1, "subtitle", name, &scan)
            case (4, UInt8(ascii: "b")): members.body = try members.string(2, "body", name, &scan)
            case (5, UInt8(ascii: "s")): members.sound = try members.string(3, "sound", name, &scan)
            case (8, UInt8(ascii: "c")): members.category = try members.string(4, "category", name, &scan)
            case (6, UInt8(ascii: "t")): members.thread = try members.string(5, "thread", name, &scan)
            case (8, UInt8(ascii: "d")): members.deepLink = try members.string(6, "deepLink", name, &scan)
            case (5, UInt8(ascii: "i")): members.image = try members.string(7, "image", name, &scan)
            case (11, UInt8(ascii: "c")): members.collapseKey = try members.string(8, "collapseKey", name, &scan)
            case (17, UInt8(ascii: "i")):
                members.interruptionLevel = try members.string(9, "interruptionLevel", name, &scan)
                interruptionLevel = try members.readInterruptionLevel(scan)
            case (4, UInt8(ascii: "d")):
                try members.note(10, "data", name, scan)
                if try !scan.takesNull() {
                    let (start, names) = (scan.place, scan)
                    try scan.members { (name) throws(JSONReader.Unusual) in
                        if names.isText("aps", in: name) || names.isText("deep_link", in: name) {
                            hasReservedData = true
                        }
                        if placeOfLink == 0, !names.isBefore(name, "deep_link") { placeOfLink = name.lowerBound - 1 }
                    }
                    if placeOfLink == 0 { placeOfLink = scan.place - 1 }
                    members.data = Place(start..<scan.place)
                }
            case (5, UInt8(ascii: "b")):
                try members.note(11, "badge", name, scan)
                if try !scan.takesNull() { badge = Int(try scan.integer()) }
            case (6, UInt8(ascii: "s")):
                try members.note(12, "silent", name, scan)
                silent = scan.holds("true", at: scan.place)
                try scan.word(silent == true ? "true" : "false")
            default: throw JSONReader.Unusual()
            }
        } while scan.takes(UInt8(ascii: ","))
        try scan.expect(UInt8(ascii: "}"))
        guard let silent else { throw JSONReader.Unusual() }
        self.message = message
        whole = start..<scan.place
        self.members = members
        self.badge = badge
        self.silent = silent
        self.interruptionLevel = interruptionLevel
        self.hasReservedData = hasReservedData
        self.placeOfLink = placeOfLink
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

extension ContentText.Members {
    /// Takes the string, or `null`, that follows `name`.
    fileprivate mutating func string(
        _ number: UInt32, _ word: StaticString, _ name: Range<Int>, _ scan: inout CanonicalScan
    ) throws(JSONReader.Unusual) -> ContentText.Place {
        try note(number, word, name, scan)
        return try scan.takesNull() ? .none : ContentText.Place(try scan.string())
    }

    /// Notes a member, which must be the one called `word` and the first of that name.
    fileprivate mutating func note(
        _ number: UInt32, _ word: StaticString, _ name: Range<Int>, _ scan: CanonicalScan
    ) throws(JSONReader.Unusual) {
        guard seen & 1 << number == 0, scan.isText(word, in: name) else { throw JSONReader.Unusual() }
        seen |= 1 << number
    }

    fileprivate func readInterruptionLevel(_ scan: CanonicalScan) throws(JSONReader.Unusual) -> InterruptionLevel? {
        guard !interruptionLevel.isAbsent else { return nil }
        let text = interruptionLevel.range.dropFirst().dropLast()
        guard let level = InterruptionLevel(rawValue: String(decoding: scan.bytes[text], as: UTF8.self)) else {
            throw JSONReader.Unusual()
        }
        return level
    }
}

extension CanonicalScan {
    fileprivate mutating func takesNull() throws(JSONReader.Unusual) -> Bool {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "n") else { return false }
        try word("null")
        return true
    }
}
