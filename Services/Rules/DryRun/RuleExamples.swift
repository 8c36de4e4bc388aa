package import PushProtocol
package import RuleLanguage

/// The examples of event data in a rule file.
package enum RuleExamples {
    /// Returns an app's examples, by event type.
    ///
    /// - Parameter path: the app's rule file, or a folder of rule files.
    package static func load(_ path: String, app: AppID) throws(RuleFileError) -> [String: [JSONValue]] {
        let (text, file) = try DryRunFiles.ruleFile(path, app: app)
        let ruleSet = try RuleFile.parse(text, file: file)
        guard ruleSet.app == app else {
            throw RuleFileError(problems: [
                RuleProblem(file: file, line: 1, key: "app", problem: "the file is not that of \(app)")
            ])
        }
        return RuleFile.read(text, file: file).1.examples
    }
}
