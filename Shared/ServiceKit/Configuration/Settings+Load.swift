import Configuration
import FoundationEssentials

extension Settings {
    /// Loads and checks everything at once.
    ///
    /// - Parameter keys: the service's own keys and the groups it uses; those of every process are added.
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
        // A variable wins over a file of the same secret that the configuration file names.
        let secretFiles = lines.secretFiles.filter { variables.values[$0.key] == nil }
            .merging(variables.secretFiles) { _, variable in variable }
        let reader = ConfigReader(
            providers: [variables, lines].map { EnvironmentVariablesProvider(environmentVariables: $0.values) })
        return Settings(keys: .process + keys, reader: reader, secretFiles: secretFiles)
    }
}

/// Turns raw names and values into checked ones, and collects what is wrong with them.
private struct SettingsLoader {
    /// Variables of the test suites, which a shell may carry along.
    private static let testPrefix = "HELIOGRAPH_TEST_"

    let keys: [ConfigurationKey]
    private let names: Set<String>
    private(set) var problems: [String] = []

    /// The settings of one place: values by key, and the files that its secrets were read from.
    struct Found {
        var values: [String: String] = [:]
        var secretFiles: [String: String] = [:]
    }

    init(keys: [ConfigurationKey]) {
        self.keys = keys.unique
        names = Set((keys + .common).flatMap { $0.isSecret ? [$0.name, $0.fileName] : [$0.name] })
    }

    /// The variables that are settings, secrets read from their files. An empty variable counts as absent.
    mutating func variables(_ environment: [String: String]) -> Found {
        for name in environment.keys.sorted()
        where name.hasPrefix("HELIOGRAPH_") && !name.hasPrefix(Self.testPrefix) && !names.contains(name) {
            problems.append("\(name): unknown variable\(hint(name))")
        }
        return values(from: environment)
    }

    /// The settings in a file of `NAME=VALUE` lines; `#` begins a comment line.
    mutating func file(_ path: String?) -> Found {
        guard let path, !path.isEmpty else { return Found() }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            // The same line comes from the kind of HELIOGRAPH_CONFIG unless the file is there but is not UTF-8.
            if FileManager.default.isReadableFile(atPath: path) { problems.append("\(path): is not UTF-8 text") }
            return Found()
        }
        var found: [String: String] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let place = "\(path):\(index + 1)"
            let line = line.trimmed
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let equals = line.firstIndex(of: "=") else {
                problems.append("\(place): expected NAME=VALUE")
                continue
            }
            let name = line[..<equals].trimmed
            if !names.contains(name) {
                problems.append("\(place): \(name): unknown key\(hint(name))")
            } else if found.updateValue(line[line.index(after: equals)...].trimmed, forKey: name) != nil {
                problems.append("\(place): \(name): stands here a second time")
            }
        }
        return values(from: found)
    }

    /// What is set for the declared keys; secrets are read from their files. Empty counts as absent.
    private mutating func values(from raw: [String: String]) -> Found {
        var found = Found()
        for key in keys {
            if let value = raw[key.name], !value.isEmpty { found.values[key.name] = value }
            guard key.isSecret, let path = raw[key.fileName], !path.isEmpty else { continue }
            if found.values[key.name] != nil {
                problems.append("\(key.fileName): is set beside \(key.name); set only one of them")
            } else if let text = SettingValue.secret(inFile: path) {
                found.values[key.name] = text
                found.secretFiles[key.name] = path
            } else {
                problems.append("\(key.fileName): “\(path)” is not a readable file with the secret in it")
            }
        }
        return found
    }

    private func hint(_ name: String) -> String {
        NearestName.of(name, among: names).map { "; did you mean \($0)?" } ?? "; --help lists the known ones"
    }

    /// Checks what is set, and that what is required is.
    mutating func check(_ values: [String: String]) {
        for key in keys {
            if let value = values[key.name] {
                if let problem = SettingValue.check(value, for: key) { problems.append(problem) }
            } else if key.isRequired, !problems.contains(where: { $0.hasPrefix("\(key.name)") }) {
                let file = key.isSecret ? " (or \(key.fileName))" : ""
                problems.append("\(key.name)\(file): is required; \(key.summary)")
            }
        }
        problems += TransportSecurity.problems(in: values, of: keys)
    }
}

extension StringProtocol {
    /// Without white space at either end.
    var trimmed: String {
        let start = drop(while: \.isWhitespace)
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
