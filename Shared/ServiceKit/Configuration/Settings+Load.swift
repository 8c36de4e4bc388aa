import FoundationEssentials
import Primitives

extension Settings {
    /// Loads and validates all settings.
    ///
    /// - Parameter keys: the service's own keys and the groups it uses; the common ones are added.
    /// - Throws: one line for each unknown name, malformed value, missing value and unreadable file.
    package static func load(
        keys: [ConfigurationKey], environment: [String: String]
    ) throws(ConfigurationError) -> Settings {
        var loader = SettingsLoader(keys: .process + keys)
        let variables = loader.variables(environment)
        let lines = loader.file(environment[ConfigurationKey.configurationFile.name])
        let values = variables.values.merging(lines.values) { variable, _ in variable }
        loader.check(values)
        guard loader.problems.isEmpty else { throw ConfigurationError(loader.problems) }
        // A variable takes precedence over a secret file named in the configuration file.
        let secretFiles = lines.secretFiles.filter { variables.values[$0.key] == nil }
            .merging(variables.secretFiles) { _, variable in variable }
        return Settings(keys: .process + keys, values: values, secretFiles: secretFiles)
    }
}

/// Validates names and values, and collects the problems.
private struct SettingsLoader {
    /// The prefix of the test suites' variables, which are ignored.
    private static let testPrefix = "HELIOGRAPH_TEST_"

    let keys: [ConfigurationKey]
    private let names: Set<String>
    private(set) var problems: [String] = []

    /// The settings of one source: values by key, and the files of its secrets.
    struct LoadedValues {
        var values: [String: String] = [:]
        var secretFiles: [String: String] = [:]
    }

    init(keys: [ConfigurationKey]) {
        self.keys = keys.unique
        names = keys.acceptedNames.union([ConfigurationKey].sharedNames)
    }

    /// Returns the settings of the environment, with secrets read from their files. Ignores empty variables.
    mutating func variables(_ environment: [String: String]) -> LoadedValues {
        for name in environment.keys.sorted()
        where name.hasPrefix("HELIOGRAPH_") && !name.hasPrefix(Self.testPrefix) && !names.contains(name) {
            problems.append("\(name): unknown variable\(hint(name))")
        }
        return values(from: environment)
    }

    /// Returns the settings of a file of `NAME=VALUE` lines; `#` starts a comment line.
    mutating func file(_ path: String?) -> LoadedValues {
        guard let path, !path.isEmpty else { return LoadedValues() }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            // An unreadable file is reported by the check of HELIOGRAPH_CONFIG, except if it is not UTF-8.
            if FileManager.default.isReadableFile(atPath: path) { problems.append("\(path): is not UTF-8 text") }
            return LoadedValues()
        }
        var found: [String: String] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let location = "\(path):\(index + 1)"
            let line = line.trimmed
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let equals = line.firstIndex(of: "=") else {
                problems.append("\(location): expected NAME=VALUE")
                continue
            }
            let name = line[..<equals].trimmed
            if !names.contains(name) {
                problems.append("\(location): \(name): unknown key\(hint(name))")
            } else if found.updateValue(line[line.index(after: equals)...].trimmed, forKey: name) != nil {
                problems.append("\(location): \(name): is set twice")
            }
        }
        return values(from: found)
    }

    /// Returns the values of the declared keys, with secrets read from their files. Ignores empty values.
    private mutating func values(from raw: [String: String]) -> LoadedValues {
        var found = LoadedValues()
        for key in keys {
            if let value = raw[key.name], !value.isEmpty { found.values[key.name] = value }
            guard key.isSecret, let path = raw[key.fileName], !path.isEmpty else { continue }
            if found.values[key.name] != nil {
                problems.append("\(key.fileName): is set together with \(key.name); set only one of them")
            } else if let text = SettingValue.secret(inFile: path) {
                found.values[key.name] = text
                found.secretFiles[key.name] = path
            } else {
                problems.append("\(key.fileName): “\(path)” is not a readable file with the secret")
            }
        }
        return found
    }

    private func hint(_ name: String) -> String {
        NearestMatch.of(name, among: names, .wide).map { "; did you mean \($0)?" } ?? "; --help lists the known names"
    }

    /// Validates the values and reports missing required ones.
    mutating func check(_ values: [String: String]) {
        for key in keys {
            if let value = values[key.name] {
                if let problem = SettingValue.check(value, for: key) { problems.append(problem) }
                if let problem = key.check?(value, values) { problems.append(problem) }
            } else if key.isRequired, !problems.contains(where: { $0.hasPrefix("\(key.name)") }) {
                let file = key.isSecret ? " (or \(key.fileName))" : ""
                problems.append("\(key.name)\(file): is required; \(key.summary)")
            }
        }
    }
}

extension StringProtocol {
    /// The text without leading and trailing white space.
    var trimmed: String {
        let start = drop(while: \.isWhitespace)
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
