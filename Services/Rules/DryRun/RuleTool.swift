import Foundation
import PushProtocol
import ServiceKit

/// The commands of `rules` that check rule files and run them dry, without bus and database.
enum RuleTool: Hashable, Sendable {
    case check([String])
    case preview(rules: String, Files)
    case diff(old: String, new: String, Files)
    /// The help of a command.
    case help(String)
    case misuse(String)

    struct Files: Hashable, Sendable {
        var events: String
        var people: String?
        /// The apps file, which has the bundle ids and credentials of apps.
        var apps: String?
        /// How long the dry run continues after the last event.
        var rest = Files.defaultRest

        static let defaultRest = Duration.seconds(86_400)
    }

    /// - Returns: `nil` if the arguments are not a command for rule files.
    init?(_ arguments: [String]) {
        guard let verb = arguments.first, RuleToolHelp.commands.contains(verb) else { return nil }
        var rest = arguments.dropFirst()
        guard !rest.contains("--help"), !rest.contains("-h") else {
            self = .help(verb)
            return
        }
        var paths: [String] = []
        var options: [String: String] = [:]
        while let word = rest.popFirst() {
            if word == "--events" || word == "--people" || (word == "--apps" && verb == "preview") {
                guard let value = rest.popFirst() else {
                    self = .misuse("\(word) needs a file")
                    return
                }
                options[word] = value
            } else if word.hasPrefix("--") {
                self = .misuse("unknown option “\(word)”")
                return
            } else {
                paths.append(word)
            }
        }
        let files = options["--events"].map { Files(events: $0, people: options["--people"], apps: options["--apps"]) }
        switch (verb, paths.count, files) {
        case ("check", 1..., nil): self = .check(paths)
        case ("preview", 1, let files?): self = .preview(rules: paths[0], files)
        case ("diff", 2, let files?): self = .diff(old: paths[0], new: paths[1], files)
        case (_, _, nil) where verb != "check" && !paths.isEmpty: self = .misuse("--events is missing")
        default: self = .misuse("wrong arguments for \(verb)")
        }
    }

    /// The printed lines, the lines on standard error, and the exit code (``RuleToolHelp/exitCodes``).
    struct Answer: Hashable, Sendable {
        var lines: [String] = []
        var complaints: [String] = []
        var code: Int32 = 0
    }

    func run(read: (String) -> Data? = RuleTool.read) -> Answer {
        do {
            switch self {
            case .help(let command): return Answer(lines: [RuleToolHelp.text(command)])
            case .misuse(let problem):
                return Answer(complaints: ["rules: \(problem)", RuleToolHelp.usage.joined(separator: "\n")], code: 64)
            case .check(let paths): return RuleTool.check(paths)
            case .preview(let path, let files):
                let platforms = try Platforms(files.apps.map { try AppCatalog.load(path: $0) })
                return RuleTool.preview(try runDry(DryRunFiles.ruleSets(path), files, read), platforms)
            case .diff(let old, let new, let files):
                let before = try runDry(DryRunFiles.ruleSets(old), files, read)
                let after = try runDry(DryRunFiles.ruleSets(new), files, read)
                return RuleTool.diff(before, after)
            }
        } catch {
            return Answer(complaints: ["\(error)"], code: 1)
        }
    }

    static func read(_ path: String) -> Data? {
        path == "-" ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: path)
    }

    private func runDry(_ ruleSets: RuleSets, _ files: Files, _ read: (String) -> Data?) throws -> DryRun {
        guard let data = read(files.events), let text = String(validating: data, as: UTF8.self) else {
            throw DryRunFiles.Problem(description: "\(files.events): there is no such file, or it is not UTF-8")
        }
        let start = Timestamp(milliseconds: 1_767_225_600_000)
        let events = try DryRunFiles.events(text, name: files.events, ruleSets: ruleSets, start: start)
        var dryRun = DryRun(ruleSets)
        if let path = files.people {
            guard let data = read(path) else {
                throw DryRunFiles.Problem(description: "\(path): there is no such file")
            }
            try DryRunFiles.people(data, name: path, into: &dryRun)
        }
        for one in events { dryRun.process(one.event, at: one.at) }
        dryRun.advance(to: (events.last?.at ?? start) + files.rest)
        return dryRun
    }
}

extension RuleTool {
    private static func check(_ paths: [String]) -> Answer {
        var answer = Answer()
        var files = 0
        var rules = 0
        for path in paths {
            do {
                let ruleSets = try DryRunFiles.ruleSets(path)
                files += ruleSets.ruleSets.count
                rules += ruleSets.ruleSets.values.map(\.rules.count).reduce(0, +)
            } catch {
                answer.complaints += error.problems.map(\.description)
                answer.code = 1
            }
        }
        if answer.code == 0 { answer.lines = ["\(rules) rules in \(files) files, no mistakes"] }
        return answer
    }

    private static func preview(_ dryRun: DryRun, _ platforms: Platforms) -> Answer {
        Answer(
            lines: dryRun.predictions.flatMap { lines($0) + platforms.lines($0) } + dryRun.refusals.map(line))
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

    private static func line(_ refusal: DryRun.Refusal) -> String {
        "\(time(refusal.at))  -  \(refusal.event)  \(refusal.reason)"
    }

    private static func diff(_ old: DryRun, _ new: DryRun) -> Answer {
        let differences = DryRunDifference.between(old.predictions, new.predictions)
        var answer = Answer(code: differences.isEmpty ? 0 : 1)
        for kind in DryRunDifference.Kind.allCases {
            let found = differences.filter { $0.kind == kind }
            guard !found.isEmpty else { continue }
            answer.lines.append("\(kind.rawValue): \(found.count)")
            for difference in found {
                guard let prediction = difference.new ?? difference.old else { continue }
                let times = [difference.old, difference.new].map { $0.map { time($0.at) } ?? "never" }
                answer.lines.append(
                    "  \(prediction.user)  \(prediction.event)  \(prediction.rule)  \(times.joined(separator: " → "))")
            }
        }
        if differences.isEmpty { answer.lines = ["no difference: every user gets the same pushes at the same time"] }
        return answer
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
