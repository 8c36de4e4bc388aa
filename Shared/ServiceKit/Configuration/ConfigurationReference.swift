/// Every key of every executable: what `--help` prints for one, and what a document or a test reads for all.
package struct ConfigurationReference: Sendable {
    /// An executable and the keys it declares beside those of every process.
    package struct Entry: Sendable {
        package let name: String
        package let keys: [ConfigurationKey]

        package init(name: String, keys: [ConfigurationKey]) {
            self.name = name
            self.keys = keys
        }
    }

    package let entries: [Entry]

    package init(_ entries: [Entry]) { self.entries = entries }

    /// The variables that `executable` takes, `NAME_FILE` variants included.
    package func variables(of executable: String) -> Set<String> {
        let own = entries.filter { $0.name == executable }.flatMap(\.keys)
        return Set((.common + own).flatMap { $0.isSecret ? [$0.name, $0.fileName] : [$0.name] })
    }

    /// One Markdown table for the keys of every process, and one for each executable.
    package var markdown: String {
        let tables = [("Every executable", [ConfigurationKey].process)] + entries.map { ($0.name, $0.keys.unique) }
        return tables.map { title, keys in
            let rows = keys.map {
                "| `\($0.name)` | \($0.kind.expectation) | \($0.defaultValue.map { "`\($0)`" } ?? "") | \($0.notes) |"
            }
            return (["## \(title)", "", "| key | value | default | |", "|---|---|---|---|"] + rows)
                .joined(separator: "\n")
        }.joined(separator: "\n\n") + "\n"
    }

    /// What `--help` prints below the usage line.
    static func help(for keys: [ConfigurationKey]) -> String {
        let keys = keys.unique
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
