/// Splits a JSON array into the texts of its elements. It does not read the elements, so an invalid one does not affect
/// the others.
enum JSONArraySplitter {
    /// Returns the elements without surrounding white space.
    ///
    /// - Throws: 400 if the text is not an array with closed strings and brackets, 413 for more than `maximum`
    ///   elements.
    static func elements(of text: [UInt8], maximum: Int) throws(EventRefusal) -> [ArraySlice<UInt8>] {
        var scan = Scan(text: text)
        scan.skipWhiteSpace()
        guard scan.take() == UInt8(ascii: "[") else { throw .invalid("the body is not a JSON array of CloudEvents") }
        var elements: [ArraySlice<UInt8>] = []
        scan.skipWhiteSpace()
        if scan.next == UInt8(ascii: "]") {
            _ = scan.take()
        } else {
            var isLast = false
            while !isLast {
                guard elements.count < maximum else {
                    throw .tooLarge("the batch has more than \(maximum) events; send several batches")
                }
                guard let element = scan.element() else {
                    throw .invalid(
                        "the body is not a complete JSON array: its element \(elements.count) is empty or not closed")
                }
                elements.append(element.text)
                isLast = element.isLast
            }
        }
        scan.skipWhiteSpace()
        guard scan.next == nil else { throw .invalid("the body continues after its JSON array") }
        return elements
    }

    private struct Scan {
        let text: [UInt8]
        var position = 0

        var next: UInt8? { position < text.count ? text[position] : nil }

        mutating func take() -> UInt8? {
            guard let byte = next else { return nil }
            position += 1
            return byte
        }

        mutating func skipWhiteSpace() {
            while let byte = next, Self.isWhiteSpace(byte) { position += 1 }
        }

        private static func isWhiteSpace(_ byte: UInt8) -> Bool {
            byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09
        }

        /// Takes one element and the comma or bracket behind it; nil if it is empty, or the text ends.
        mutating func element() -> (text: ArraySlice<UInt8>, isLast: Bool)? {
            skipWhiteSpace()
            let start = position
            var depth = 0
            while let byte = take() {
                switch byte {
                case UInt8(ascii: "\""): guard skipString() else { return nil }
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "]") where depth == 0, UInt8(ascii: ",") where depth == 0:
                    var element = text[start..<(position - 1)]
                    while let last = element.last, Self.isWhiteSpace(last) { element.removeLast() }
                    return element.isEmpty ? nil : (element, byte == UInt8(ascii: "]"))
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    guard depth > 0 else { return nil }
                    depth -= 1
                default: continue
                }
            }
            return nil
        }

        /// Skips a string after its opening quote; false if it is not closed.
        private mutating func skipString() -> Bool {
            while let byte = take() {
                if byte == UInt8(ascii: "\"") { return true }
                if byte == UInt8(ascii: "\\") { _ = take() }
            }
            return false
        }
    }
}
