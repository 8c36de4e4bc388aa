import ServiceKit
import TestSupport

/// The settings that an executable lists with `--help`.
struct HelpOutput: Sendable {
    /// The variables it reads, including `NAME_FILE` variants.
    let variables: Set<String>
    /// The required variables.
    let required: Set<String>

    static func of(_ product: String) async throws -> HelpOutput {
        // Its help lists commands instead of settings.
        guard product != "pushctl" else {
            return HelpOutput(variables: [ConfigurationKey].sharedNames, required: [])
        }
        let process = try ChildProcess(product: product, ["--help"])
        guard await process.exit() == 0 else { throw HelpFailure(product: product, output: process.errors) }
        var help = HelpOutput(variables: [], required: [])
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
        self = HelpOutput(
            variables: variables.union([name] + file),
            required: notes.contains(" Required.") ? required.union([name]) : required)
    }

    struct HelpFailure: Error {
        let product: String
        let output: String
    }
}
