extension String {
    /// The longest prefix of whole characters with at most `limit` UTF-8 bytes.
    package func truncated(toUTF8 limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var kept = ""
        var size = 0
        for character in self {
            size += character.utf8.count
            guard size <= limit else { break }
            kept.append(character)
        }
        return kept
    }
}
