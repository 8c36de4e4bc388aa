import ArgumentParser
import Foundation
import PushProtocol
import RuleDryRun
import ServiceKit

/// `pushctl trigger`: publishes an example of a rule file as an event.
struct TriggerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trigger",
        abstract: "Publish an event of this type with the data of an example in the app's rule file.",
        discussion: """
            The event is a real one: users of the example that exist are notified. Change the data with --set, whose
            value is JSON or a text: --set message.text="Hello" --set 'participants=["457"]'.
            """)
    @Argument(help: "The event type, as the rule file lists it under events.") var type: String
    @Option(help: "The app.") var app: String
    @Option(help: "The app's rule file, or the folder of rule files.") var rules: String
    @Option(help: "The number of the example, from 1.") var example = 1
    @Option(name: .customLong("set"), help: ArgumentHelp("Replace a value of the data.", valueName: "path=value"))
    var replacements: [String] = []
    @OptionGroup var identity: EventIdentity
    @OptionGroup var waiting: WaitOption
    @OptionGroup var apps: AppsOption
    @OptionGroup var output: OutputOption

    func run() async throws {
        let app = try apps.app(app).id
        var data = try Self.example(example, of: type, app, rules)
        for replacement in replacements { data = try Self.replace(replacement, in: data) }
        let event = try UpstreamEvent(type: type, data: data, identity: identity, app: app)
        try await waiting.publish(event, output)
    }

    private static func example(_ number: Int, of type: String, _ app: AppID, _ path: String) throws -> JSONValue {
        let examples: [String: [JSONValue]]
        do { examples = try AppRuleFile(path, app: app).examples } catch { throw CommandError("\(error)", .input) }
        guard let ofType = examples[type] else {
            let known = examples.keys.sorted().joined(separator: ", ")
            throw CommandError("the rule file of \(app) does not list “\(type)”; it lists \(known)", .notFound)
        }
        guard ofType.indices.contains(number - 1) else {
            throw CommandError("“\(type)” has \(ofType.count) examples; choose --example 1 to \(ofType.count)", .usage)
        }
        return ofType[number - 1]
    }

    /// Sets the value at a dotted path. Objects on the way are created.
    static func replace(_ text: String, in data: JSONValue) throws -> JSONValue {
        guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
            throw CommandError("--set takes path=value, such as message.text=Hello", .usage)
        }
        let written = String(text[text.index(after: equals)...])
        let value = (try? WireCoding.decode(JSONValue.self, from: Array(written.utf8))) ?? .string(written)
        let path = text[..<equals].split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard let changed = data.replacing(path[...], by: value) else {
            throw CommandError("--set \(path.joined(separator: ".")): a value on the way is not an object", .usage)
        }
        return changed
    }
}

extension JSONValue {
    /// Returns this value with another at the path; `nil` if a value on the way is not an object.
    fileprivate func replacing(_ path: ArraySlice<String>, by value: JSONValue) -> JSONValue? {
        guard let name = path.first else { return value }
        guard var members = object else { return nil }
        guard let inner = (members[name] ?? [:]).replacing(path.dropFirst(), by: value) else { return nil }
        members[name] = inner
        return .object(members)
    }
}
