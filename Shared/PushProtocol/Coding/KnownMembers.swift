extension Decoder {
    /// Refuses an object with a member that `Key` does not name. For what narrows who is meant: elsewhere members that nobody
    /// knows are passed over, but here that would tell more people than somebody wanted.
    func refuseOthers<Key: CodingKey & CaseIterable>(than _: Key.Type) throws {
        let known = Set(Key.allCases.map(\.stringValue))
        let container = try container(keyedBy: AnyMember.self)
        guard let other = container.allKeys.map(\.stringValue).filter({ !known.contains($0) }).min() else { return }
        throw DecodingError.dataCorruptedError(
            forKey: AnyMember(stringValue: other), in: container,
            debugDescription: "is not known here; there are \(known.sorted().joined(separator: ", "))")
    }
}

private struct AnyMember: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
