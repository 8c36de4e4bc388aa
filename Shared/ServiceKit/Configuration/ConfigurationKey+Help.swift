extension [ConfigurationKey] {
    /// The text of `--help` below the usage line.
    var help: String {
        let keys = unique
        let width = keys.map(\.name.count).max() ?? 0
        return keys.map { key in
            let name = key.name + String(repeating: " ", count: width - key.name.count)
            let indent = String(repeating: " ", count: width + 4)
            let value = key.defaultValue.map { "\(key.kind.expectation); default \($0)" } ?? key.kind.expectation
            return "  \(name)  \(key.notes)\n\(indent)\(value)"
        }.joined(separator: "\n")
    }
}

extension ConfigurationKey {
    fileprivate var notes: String {
        summary + (isRequired ? " Required." : "") + (isSecret ? " Secret: or a file named by \(fileName)." : "")
    }
}
