import Foundation
import PushProtocol
import RuleEngine
import RuleLanguage

enum DryRunFiles {
    /// An input that cannot be read. The description is shown to the user.
    struct Problem: Error, CustomStringConvertible { var description: String }

    static func ruleSets(_ path: String) throws(RuleFileError) -> RuleSets {
        if isFolder(path) { return try RuleDirectory.load(path) }
        let (text, file) = try text(path)
        return RuleSets([try RuleFile.parse(text, file: file)])
    }

    /// The rule sets to compare.
    ///
    /// - Parameters:
    ///   - new: `nil`: the old rules, with the changes of the branch.
    ///   - branch: changes of the new rules, such as `cap=3`.
    static func pair(old: String, new: String?, branch: String?) throws -> (old: RuleSets, new: RuleSets) {
        guard new != nil || branch != nil else {
            throw Problem(description: "give the new rules, or a change of the old ones with --branch")
        }
        let oldRules = try ruleSets(old)
        let newRules = try new.map { path throws(RuleFileError) in try ruleSets(path) } ?? oldRules
        return (oldRules, try branch.map { text in try RuleBranch(text).applied(to: newRules) } ?? newRules)
    }

    /// The text and the name of an app's rule file. `path` is the file, or a folder with it.
    static func ruleFile(_ path: String, app: AppID) throws(RuleFileError) -> (text: String, file: String) {
        try text(isFolder(path) ? "\(path)/\(app).yaml" : path)
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    private static func text(_ path: String) throws(RuleFileError) -> (text: String, file: String) {
        guard let data = FileManager.default.contents(atPath: path), let text = String(validating: data, as: UTF8.self)
        else {
            throw RuleFileError(problems: [
                RuleProblem(
                    file: path, line: 1, key: "", problem: "there is no such file or folder, or it is not UTF-8")
            ])
        }
        return (text, String(path.split(separator: "/").last ?? ""))
    }

    struct Recorded {
        var happening: Happening
        var at: Timestamp

        /// `nil` for a receipt.
        var event: DomainEvent? {
            switch happening {
            case .event(let event): event
            case .receipt: nil
            }
        }
    }

    enum Happening {
        case event(DomainEvent)
        case receipt(DryRunReceipt)
    }

    /// Reads recorded events and receipts, one JSON object a line.
    ///
    /// A line is a structured CloudEvent or, for rules of several apps, `{"app": "…", "event": {…}}`. Both may have
    /// `"at"`, an RFC 3339 time. Without `at` an event happens at its `time`, and without both a second after the
    /// previous event. A receipt is `{"receipt": {"user": …, "rule": …, "what": "opened"}}`, with `app` and `at` as above.
    static func events(_ text: String, name: String, ruleSets: RuleSets, start: Timestamp) throws(Problem) -> [Recorded]
    {
        var recorded: [Recorded] = []
        var clock = start
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard !line.allSatisfy(\.isWhitespace) else { continue }
            do {
                let one = try happening(Array(line.utf8), ruleSets: ruleSets)
                clock = one.at ?? one.happening.time ?? clock + .seconds(1)
                recorded.append(Recorded(happening: one.happening, at: clock))
            } catch {
                throw Problem(description: "\(name):\(index + 1): \(error)")
            }
        }
        return recorded.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }

    private static func happening(
        _ line: [UInt8], ruleSets: RuleSets
    ) throws -> (happening: Happening, at: Timestamp?) {
        guard let members = try WireCoding.decode(JSONValue.self, from: line).object else {
            throw Problem(description: "expected an object")
        }
        let app: String
        switch (members["app"]?.string, ruleSets.ruleSets.count) {
        case (let name?, _): app = name
        case (nil, 1): app = ruleSets.ruleSets.keys.first?.rawValue ?? ""
        case (nil, _): throw Problem(description: "the rules are of several apps; add “app” to the line")
        }
        let at = try members["at"].map { value in
            guard let date = value.string.flatMap(RFC3339.date(from:)) else {
                throw Problem(description: "“at” is not a time such as 2026-03-31T09:00:00Z")
            }
            return Timestamp(date)
        }
        if let receipt = members["receipt"] { return (.receipt(try DryRunReceipt(receipt, app: app)), at) }
        return (.event(try event(members, app: app)), at)
    }

    private static func event(_ members: [String: JSONValue], app: String) throws -> DomainEvent {
        let body = members["event"] ?? .object(members.filter { $0.key != "at" && $0.key != "app" })
        guard let type = body["type"]?.string else { throw Problem(description: "the event has no type") }
        return try CloudEvents.decode(
            routingKey: "\(app).\(type)", contentType: CloudEvents.structuredContentType, headers: [:],
            body: try WireCoding.encode(body))
    }

    /// Reads people and groups, which every app gets.
    ///
    /// Format: `{"people": {"<user>": {settings}}, "groups": {"<group>": ["<user>", {"id": …, "role": …}]},
    /// "segments": {"tag <name>": ["<user>"]}}`.
    static func people(_ data: Data, name: String, into dryRun: inout DryRun) throws(Problem) {
        struct File: Decodable {
            var people: [String: PersonalSettings]?
            var groups: [String: [JSONValue]]?
            var segments: [String: [JSONValue]]?
        }
        let file: File
        do { file = try WireCoding.decode(File.self, from: Array(data)) } catch {
            throw Problem(description: "\(name): \(error)")
        }
        for (segment, users) in file.segments ?? [:] {
            dryRun.segments[segment] = try users.map { value throws(Problem) in
                guard let user = value.userID else {
                    throw Problem(description: "\(name): “\(segment)” has a value that is no user id")
                }
                return user
            }
        }
        for app in dryRun.ruleSets.ruleSets.keys {
            for (id, settings) in file.people ?? [:] {
                guard let user = UserID(rawValue: id) else {
                    throw Problem(description: "\(name): “\(id)” is not a user id")
                }
                dryRun.people[PersonKey(app: app, user: user), default: Person()].settings = settings
            }
            for (group, members) in file.groups ?? [:] {
                for member in members {
                    guard let user = (member.userID ?? member["id"]?.userID) else {
                        throw Problem(description: "\(name): a member of “\(group)” has no user id")
                    }
                    dryRun.groups[GroupKey(app: app, group: group), default: DryRunGroup()]
                        .add(user, role: member["role"]?.string)
                }
            }
        }
    }
}
