/// The keys of all executables, for `--help`, documents and tests.
package struct ConfigurationReference: Sendable {
    /// An executable and its own keys.
    package struct Executable: Sendable {
        package let name: String
        package let keys: [ConfigurationKey]

        package init(name: String, keys: [ConfigurationKey]) {
            self.name = name
            self.keys = keys
        }
    }

    package let entries: [Executable]

    package init(_ entries: [Executable]) { self.entries = entries }

    /// Returns the variables that `executable` accepts, including `NAME_FILE` variants.
    package func variables(of executable: String) -> Set<String> {
        let own = entries.filter { $0.name == executable }.flatMap(\.keys)
        return own.acceptedNames.union([ConfigurationKey].sharedNames)
    }

    /// A Markdown table of the common keys, and one for each executable.
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

    /// Returns the text of `--help` below the usage line.
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
