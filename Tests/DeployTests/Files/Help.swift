import ServiceKit
import TestSupport

/// What an executable says of its own settings, asked by running it with `--help`.
struct Help: Sendable {
    /// The variables it reads, `NAME_FILE` variants included.
    let variables: Set<String>
    /// Those it does not start without.
    let required: Set<String>

    static func of(_ product: String) async throws -> Help {
        // An operator's command, which describes its commands there; it reads what belongs to no single service.
        guard product != "pushctl" else {
            return Help(variables: ConfigurationReference([]).variables(of: product), required: [])
        }
        let process = try ChildProcess(product: product, ["--help"])
        guard await process.exit() == 0 else { throw NoHelp(product: product, said: process.errors) }
        var help = Help(variables: [], required: [])
        for line in process.output.split(separator: "\n") {
            guard let match = line.wholeMatch(of: #/  ([A-Z][A-Z0-9_]*)  +(\S.*)/#) else { continue }
            help.add(String(match.1), notes: String(match.2))
        }
        return help
    }

    private init(variables: Set<String>, required: Set<String>) {
        self.variables = variables
        self.required = required
    }

    private mutating func add(_ name: String, notes: String) {
        let file = notes.contains("a file named by \(name)_FILE") ? ["\(name)_FILE"] : []
        self = Help(
            variables: variables.union([name] + file),
            required: notes.contains(" Required.") ? required.union([name]) : required)
    }

    struct NoHelp: Error {
        let product: String
        let said: String
    }
}
