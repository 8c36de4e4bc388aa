package import Foundation
package import PushProtocol

/// The folder of rule files, one file for each app.
package enum RuleDirectory {
    /// The maximum size of a rule file, in bytes; enough for some 10,000 rules.
    static let maximumFileSize = 4 * 1024 * 1024

    /// Reads all files of a folder, or throws all errors of all files. Ignores hidden files.
    ///
    /// - Parameters:
    ///   - isConfigured: whether an app is in the apps file.
    ///   - isShared: whether the apps file lets the first app's events reach the second app.
    package static func load(
        _ directory: String, isConfigured: @escaping @Sendable (AppID) -> Bool = { _ in false },
        isShared: (AppID, AppID) -> Bool = { _, _ in true }
    ) throws(RuleFileError) -> RuleSets {
        guard let names = names(in: directory) else { throw refusal(directory, "the folder cannot be read") }
        guard !names.isEmpty else { throw refusal(directory, "there is no rule file in this folder") }
        var problems: [RuleProblem] = []
        var ruleSets: [RuleSet] = []
        for name in names {
            do {
                ruleSets.append(try read(name, in: directory))
            } catch {
                problems += error.problems
            }
        }
        guard problems.isEmpty else { throw RuleFileError(problems: problems) }
        let loaded = RuleSets(ruleSets, isConfigured: isConfigured)
        let mistakes = loaded.problems(sharing: isShared)
        guard mistakes.isEmpty else { throw RuleFileError(problems: mistakes) }
        return loaded
    }

    /// Returns the bytes of every file, for detecting changes; `nil` if the folder cannot be read.
    package static func texts(_ directory: String) -> [String: Data?]? {
        names(in: directory).map { names in
            Dictionary(
                uniqueKeysWithValues: names.map { ($0, FileManager.default.contents(atPath: "\(directory)/\($0)")) })
        }
    }

    private static func names(in directory: String) -> [String]? {
        try? FileManager.default.contentsOfDirectory(atPath: directory).filter { !$0.hasPrefix(".") }.sorted()
    }

    private static func read(_ name: String, in directory: String) throws(RuleFileError) -> RuleSet {
        guard name.hasSuffix(".yaml") else {
            throw refusal(name, "not a rule file; this folder takes only files named <app>.yaml")
        }
        guard let data = FileManager.default.contents(atPath: "\(directory)/\(name)") else {
            throw refusal(name, "the file cannot be read")
        }
        guard data.count <= maximumFileSize else { throw refusal(name, "the file is larger than 4 MiB") }
        guard let text = String(validating: data, as: UTF8.self) else { throw refusal(name, "the file is not UTF-8") }
        return try RuleFile.parse(text, file: name)
    }

    private static func refusal(_ file: String, _ problem: String) -> RuleFileError {
        RuleFileError(problems: [RuleProblem(file: file, line: 1, key: "", problem: problem)])
    }
}
