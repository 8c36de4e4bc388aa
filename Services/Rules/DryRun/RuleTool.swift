package import ArgumentParser
import Foundation
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceKit

/// `rules check`, `preview`, `diff`, `catalog` and `schema`: check rule files, run them dry and describe their events,
/// without broker and database. `pushctl rules` has the same commands.
package struct RuleTool: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract: "Check rule files, preview their notifications, compare two versions, and describe their events.",
        subcommands: commands)

    package static let commands: [any ParsableCommand.Type] = [
        Check.self, Preview.self, Diff.self, Catalog.self, Schema.self,
    ]

    /// A line for each command, for the help of the service.
    package static let usage = commands.map { command in
        "       rules \(command._commandName)".padding(toLength: 40, withPad: " ", startingAt: 0)
            + command.configuration.abstract
    }

    package init() {}

    package static func accepts(_ arguments: [String]) -> Bool {
        commands.contains { $0._commandName == arguments.first }
    }

    /// Runs the named command, and exits with its code on failure.
    package static func run(_ arguments: [String]) { main(arguments) }

    package struct Check: RuleToolCommand {
        package static let configuration = CommandConfiguration(
            abstract: "Read rule files and print every mistake with file, line and key.",
            discussion: "Every rule is rendered with every example that it matches. Nothing is sent.\n\n\(exitCodes)")

        @Argument(help: ArgumentHelp("Folders of rule files, or single files.", valueName: "path"))
        var paths: [String]
        @Flag(help: "Print one JSON document instead of text.") var json = false

        package init() {}

        func answer(read: (String) -> Data?) -> Answer { RuleTool.check(paths) }
    }

    package struct Preview: RuleToolCommand {
        package static let configuration = CommandConfiguration(
            abstract: "Decide recorded events as the service would, and print one line for each decision.",
            discussion: """
                Below a push are its content and the request to each provider with its size. Below a new inbox item is \
                its text, if it differs from the push. The rule “!badge” is a correction of a badge. Nothing is sent.

                \(DryRunOptions.files)

                \(exitCodes)
                """)

        @Argument(help: ArgumentHelp("A folder of rule files, or a single file.", valueName: "path"))
        var path: String
        @OptionGroup var files: DryRunOptions
        @Option(
            help: ArgumentHelp(
                "The apps file (HELIOGRAPH_APPS): shows bundle ids, and skips providers without credentials.",
                valueName: "file"))
        var apps: String?
        @Flag(help: "Print one JSON document instead of text.") var json = false

        package init() {}

        func answer(read: (String) -> Data?) throws -> Answer {
            let platforms = try Platforms(apps.map { try AppCatalog.load(path: $0) })
            return RuleTool.preview(try files.runDry(DryRunFiles.ruleSets(path), read), platforms)
        }
    }

    package struct Diff: RuleToolCommand {
        package static let configuration = CommandConfiguration(
            abstract: "Decide recorded events by old and by new rules, and print the pushes that differ.",
            discussion: """
                Users get more, fewer, later, earlier or different pushes. Nothing is sent.

                \(branches)

                \(DryRunOptions.files)

                \(exitCodes)
                """)

        @Argument(help: ArgumentHelp("The old rules: a folder of rule files, or a single file.", valueName: "old"))
        var old: String
        @Argument(help: ArgumentHelp("The new rules. Left out: the old rules, changed by --branch.", valueName: "new"))
        var new: String?
        @Option(help: branchHelp) var branch: String?
        @OptionGroup var files: DryRunOptions
        @Flag(help: "Print one JSON document instead of text.") var json = false

        package init() {}

        package func validate() throws {
            guard new != nil || branch != nil else {
                throw ValidationError("Missing expected argument '<new>', or a change of the old rules with --branch")
            }
        }

        func answer(read: (String) -> Data?) throws -> Answer {
            let rules = try DryRunFiles.pair(old: old, new: new, branch: branch)
            return RuleTool.diff(try files.runDry(rules.old, read), try files.runDry(rules.new, read))
        }
    }

    package static let branches = """
        A branch is a list of changes: cap=3 (every cap), cap.NAME=3/6h (one cap and its window), quiet=22-8 (quiet hours \
        of users without their own) and type.NAME=off (off for users without a choice).
        """
    package static let branchHelp = ArgumentHelp(
        "Changes of the new rules, such as cap=3,quiet=22-8.", valueName: "changes")

    package static let exitCodes =
        "Exit codes: 0 no mistake, no difference; 1 a mistake, a difference, or a file that cannot be read; "
        + "64 wrong arguments."
}

/// The printed lines, the lines on standard error, and the exit code.
struct Answer: Hashable, Sendable {
    var lines: [String] = []
    var complaints: [String] = []
    var code: Int32 = 0
    /// The document in place of the lines; `nil` if there is none.
    var json: JSONValue?
}

/// An error in the input of a command. Its description is shown to the user.
package protocol RuleToolError: Error, CustomStringConvertible {}

extension RuleFileError: RuleToolError {}
extension RuleBranch.Problem: RuleToolError {}
extension DryRunFiles.Problem: RuleToolError {}

protocol RuleToolCommand: ParsableCommand {
    /// Whether to print ``Answer/json`` in place of the lines.
    var json: Bool { get }

    /// - Parameter read: returns the content of a file; `-` is the standard input.
    func answer(read: (String) -> Data?) throws -> Answer
}

extension RuleToolCommand {
    /// Prints the answer. Exits with its code.
    package func run() throws {
        let answer = answerOrComplaint(read: Self.read)
        if json, let document = answer.json {
            print(try WireCoding.text(document))
        } else {
            for line in answer.lines { print(line) }
        }
        for line in answer.complaints { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
        if answer.code != 0 { throw ExitCode(answer.code) }
    }

    func answerOrComplaint(read: (String) -> Data?) -> Answer {
        do { return try answer(read: read) } catch { return Answer(complaints: ["\(error)"], code: 1) }
    }

    private static func read(_ path: String) -> Data? {
        path == "-" ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: path)
    }
}

extension RuleTool {
    fileprivate static func check(_ paths: [String]) -> Answer {
        var answer = Answer()
        var files = 0
        var rules = 0
        var mistakes: [RuleProblem] = []
        for path in paths {
            do {
                let ruleSets = try DryRunFiles.ruleSets(path)
                files += ruleSets.ruleSets.count
                rules += ruleSets.ruleSets.values.map(\.rules.count).reduce(0, +)
            } catch {
                mistakes += error.problems
                answer.code = 1
            }
        }
        let hints = mistakes.isEmpty ? paths.flatMap(RuleSchema.hints) : []
        answer.complaints = mistakes.map(\.description) + hints
        answer.json = json(rules: rules, files: files, mistakes: mistakes, hints: hints)
        if answer.code == 0 { answer.lines = ["\(rules) rules in \(files) files, no mistakes"] }
        return answer
    }

    fileprivate static func preview(_ dryRun: DryRun, _ platforms: Platforms) -> Answer {
        Answer(
            lines: dryRun.predictions.flatMap { lines($0) + platforms.lines($0) } + dryRun.refusals.map(line),
            json: json(dryRun, platforms))
    }

    private static func lines(_ prediction: DryRun.PredictedDecision) -> [String] {
        var lines = [
            "\(time(prediction.at))  \(prediction.user)  \(prediction.event)  \(prediction.rule)  \(prediction.decision.readableText)"
        ]
        if let content = prediction.content, let bytes = try? WireCoding.encode(content) {
            lines.append("    \(String(decoding: bytes, as: UTF8.self))")
        }
        if let kept = prediction.kept, kept != prediction.content, let bytes = try? WireCoding.encode(kept) {
            lines.append("    inbox: \(String(decoding: bytes, as: UTF8.self))")
        }
        return lines
    }

    private static func line(_ refusal: DryRun.RefusedEvent) -> String {
        "\(time(refusal.at))  -  \(refusal.event)  \(refusal.reason)"
    }

    fileprivate static func diff(_ old: DryRun, _ new: DryRun) -> Answer {
        let differences = DryRunDifference.between(old.predictions, new.predictions)
        var answer = Answer(code: differences.isEmpty ? 0 : 1, json: json(differences))
        for kind in DryRunDifference.Kind.allCases {
            let found = differences.filter { $0.kind == kind }
            guard !found.isEmpty else { continue }
            answer.lines.append("\(kind.rawValue): \(found.count)")
            answer.lines += found.compactMap(line)
        }
        if differences.isEmpty { answer.lines = ["no difference: every user gets the same pushes at the same time"] }
        return answer
    }

    static func line(_ difference: DryRunDifference) -> String? {
        guard let prediction = difference.prediction else { return nil }
        let times = [difference.old, difference.new].map { $0.map { time($0.at) } ?? "never" }
        return "  \(prediction.user)  \(prediction.event)  \(prediction.rule)  \(times.joined(separator: " → "))"
    }

    private static func time(_ moment: Timestamp) -> String { RFC3339.string(from: moment.date) }
}

extension RuleDecision {
    /// The readable form: `push (wanted)`, `hold until … (quiet-hours)`.
    var readableText: String {
        let until = answer.until.map { " until \(RFC3339.string(from: $0.date))" } ?? ""
        return "\(answer.word)\(until) (\(reason.rawValue))"
    }
}
