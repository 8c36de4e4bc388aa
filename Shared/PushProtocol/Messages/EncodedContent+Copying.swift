extension EncodedContent {
    /// Calls `see` with the ranges of each member of `data`: the name without quotes, and the value.
    package func forEachDataMember(
        in source: UnsafeBufferPointer<UInt8>, _ see: (_ name: Range<Int>, _ value: Range<Int>) -> Void
    ) {
        guard !members.data.isAbsent, members.data.count > 2 else { return }
        var scan = JSONReader(source, from: members.data.range.lowerBound)
        do throws(JSONReader.Unreadable) {
            try scan.open(UInt8(ascii: "{"))
            repeat {
                let name = try scan.canonicalName()
                see(name, try scan.canonicalValue())
            } while scan.consumeNext(UInt8(ascii: ","))
        } catch {
            preconditionFailure("the scanned data is an object")
        }
    }
}

extension EncodedContent.Members {
    package var hasAlert: Bool { !title.isAbsent || !subtitle.isAbsent || !body.isAbsent }

    /// The total size of the members that a payload may contain, in bytes.
    package var length: Int {
        title.count + subtitle.count + body.count + sound.count + category.count + thread.count + deepLink.count
            + image.count + interruptionLevel.count + data.count
    }
}

extension ByteWriter {
    package mutating func put(_ position: EncodedContent.FieldRange, _ source: UnsafeBufferPointer<UInt8>) {
        put(source, position.range)
    }

    package mutating func put(_ source: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        put(UnsafeBufferPointer(rebasing: source[range]))
    }

    /// Writes a JSON value as a JSON string, escaping quotes and backslashes.
    package mutating func putEscaped(_ source: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        put("\"")
        var start = range.lowerBound
        for position in range where source[position] == UInt8(ascii: "\"") || source[position] == UInt8(ascii: "\\") {
            put(source, start..<position)
            put("\\")
            start = position
        }
        put(source, start..<range.upperBound)
        put("\"")
    }
}
