package import PushProtocol
package import RuleLanguage

/// One app's rule file, read for a command.
package struct AppRuleFile {
    package let ruleSet: RuleSet
    /// The examples of event data, by event type.
    package let examples: [String: [JSONValue]]

    /// - Parameter path: the app's rule file, or a folder of rule files.
    package init(_ path: String, app: AppID) throws(RuleFileError) {
        let (text, file) = try DryRunFiles.ruleFile(path, app: app)
        ruleSet = try RuleFile.parse(text, file: file)
        guard ruleSet.app == app else {
            throw RuleFileError(problems: [
                RuleProblem(file: file, line: 1, key: "app", problem: "the file is not that of \(app)")
            ])
        }
        examples = RuleFile.read(text, file: file).1.examples
    }
}
