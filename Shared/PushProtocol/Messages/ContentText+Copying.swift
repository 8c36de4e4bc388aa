extension ContentText {
    /// Shows each member of `data` in turn: where its name stands, without the quotes, and where its value does.
    package func eachDatum(
        in source: UnsafeBufferPointer<UInt8>, _ see: (_ name: Range<Int>, _ value: Range<Int>) -> Void
    ) {
        guard !members.data.isAbsent, members.data.count > 2 else { return }
        var scan = CanonicalScan(source, from: members.data.range.lowerBound, depth: 0)
        do throws(JSONReader.Unusual) {
            try scan.open(UInt8(ascii: "{"))
            repeat {
                let name = try scan.name()
                see(name, try scan.value())
            } while scan.takes(UInt8(ascii: ","))
        } catch {
            preconditionFailure("what was passed over is an object")
        }
    }
}

extension ContentText.Members {
    package var haveAlert: Bool { !title.isAbsent || !subtitle.isAbsent || !body.isAbsent }

    /// The bytes of all that a payload may be made of.
    package var length: Int {
        title.count + subtitle.count + body.count + sound.count + category.count + thread.count + deepLink.count
            + image.count + interruptionLevel.count + data.count
    }
}

extension ByteCursor {
    /// Copies a member from the message it stands in.
    package mutating func put(_ place: ContentText.Place, _ source: UnsafeBufferPointer<UInt8>) {
        put(source, place.range)
    }

    /// Copies a part of `source`.
    package mutating func put(_ source: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        put(UnsafeBufferPointer(rebasing: source[range]))
    }

    /// Writes JSON that stands in `source` as a string that holds it: its quotes and backslashes are all there is to
    /// escape.
    package mutating func putQuoted(_ source: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        put("\"")
        var start = range.lowerBound
        for place in range where source[place] == UInt8(ascii: "\"") || source[place] == UInt8(ascii: "\\") {
            put(source, start..<place)
            put("\\")
            start = place
        }
        put(source, start..<range.upperBound)
        put("\"")
    }
}
