extension Decoder {
    /// An object's members; one that `Key` does not name is refused. For what narrows who is meant: elsewhere members that
    /// nobody knows are passed over, but here that would tell more people than somebody wanted.
    func container<Key: CodingKey & CaseIterable>(exactly keys: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue))
        let all = try container(keyedBy: AnyMember.self)
        if let other = all.allKeys.map(\.stringValue).filter({ !known.contains($0) }).min() {
            let others = "there are \(known.sorted().joined(separator: ", "))"
            guard other.looksLikeAName else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(codingPath: codingPath, debugDescription: "has an unknown member; \(others)"))
            }
            throw DecodingError.dataCorruptedError(
                forKey: AnyMember(stringValue: other), in: all, debugDescription: "is not known here; \(others)")
        }
        return try container(keyedBy: keys)
    }
}

extension String {
    /// Only what looks like a member's name is told to logs and to whoever sent it: anything else may be a token in the wrong
    /// place, and the shortest of those, an FID, has 22 characters.
    fileprivate var looksLikeAName: Bool {
        utf8.count < 22 && utf8.allSatisfy { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 }
    }
}

private struct AnyMember: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
