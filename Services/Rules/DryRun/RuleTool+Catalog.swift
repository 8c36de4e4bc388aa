package import ArgumentParser
import Contracts
import Foundation
import PushProtocol
import RuleLanguage

extension RuleTool {
    /// `rules catalog`: describes the events of an app for their producers.
    package struct Catalog: RuleToolCommand {
        package static let configuration = CommandConfiguration(
            abstract: "Describe the events of a rule file for their producers: a page, JSON Schemas or examples.",
            discussion: """
                “json-schema” is one JSON Schema (2020-12) of all event types, as structured CloudEvents. It refuses \
                events that the rules would refuse. “examples” are the file's examples as complete events, one a line: \
                the input of `rules preview`.

                Exit codes: 0 success; 1 a mistake in the file, or a file that cannot be read or written; \
                64 wrong arguments.
                """)

        /// The form of the output.
        enum Format: String, CaseIterable, ExpressibleByArgument {
            case markdown
            case jsonSchema = "json-schema"
            case examples
        }

        @Option(help: ArgumentHelp("The rule file.", valueName: "file"))
        var rules: String
        @Option(help: "The form of the output.")
        var format = Format.markdown
        @Option(help: ArgumentHelp("The file to write; absent: the standard output.", valueName: "file"))
        var out: String?

        /// The formats are `--format`.
        var json: Bool { false }

        package init() {}

        func answer(read: (String) -> Data?) throws -> Answer {
            guard let data = read(rules), let text = String(validating: data, as: UTF8.self) else {
                throw DryRunFiles.Problem(description: "\(rules): there is no such file, or it is not UTF-8")
            }
            let catalog: EventCatalog
            do {
                catalog = try EventCatalog(text, file: String(rules.split(separator: "/").last ?? ""))
            } catch {
                return Answer(complaints: error.problems.map(\.description), code: 1)
            }
            let output =
                switch format {
                case .markdown: catalog.markdown
                case .jsonSchema: catalog.schema.pretty
                case .examples: catalog.exampleLines
                }
            guard let out else { return Answer(lines: [String(output.dropLast())]) }
            do { try Data(output.utf8).write(to: URL(filePath: out)) } catch {
                throw DryRunFiles.Problem(description: "\(out) cannot be written: \(error.localizedDescription)")
            }
            return Answer()
        }
    }
}

// MARK: - JSON

extension EventCatalog {
    /// The JSON Schema of all event types, as structured CloudEvents.
    var schema: JSONValue {
        let types = events.map { JSONValue.string($0.type) }
        let type: JSONValue = ["enum": .array(types), "description": "The event's type."]
        let parts = events.flatMap { event in
            let isType: JSONValue = [
                "properties": ["type": ["const": .string(event.type)]], "required": ["type"],
            ]
            var then: JSONValue = ["properties": ["data": event.dataSchema]]
            if event.fields.contains(where: \.isAlwaysRequired) { then = then.merging(["required": ["data"]]) }
            let attributes = event.attributeSchemas
            if !attributes.isEmpty { then = then.merging(["allOf": .array(attributes)]) }
            return [["if": isType, "then": then] as JSONValue]
        }
        let head: JSONValue = [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": .string("https://heliograph.example/contracts/events/\(app).json"),
            "title": .string("Events of \(app)"),
            "description": "CloudEvents 1.0 in structured mode. Made from the rule file by “rules catalog”.",
            "allOf": .array(parts),
        ]
        return MessageContract.cloudEvent(type: type).merging(head)
    }

    /// The example events as structured CloudEvents, one a line.
    var exampleLines: String {
        exampleEvents.map { event in
            let bytes = (try? WireCoding.encode(event.structured)) ?? []
            return String(decoding: bytes, as: UTF8.self) + "\n"
        }.joined()
    }
}

extension DomainEvent {
    /// The event in structured mode.
    fileprivate var structured: JSONValue {
        var members: [String: JSONValue] = [
            "specversion": "1.0", "id": .string(id), "source": .string(source), "type": .string(type),
            "datacontenttype": "application/json", "data": data,
        ]
        members["subject"] = subject.map(JSONValue.string)
        members["time"] = time.map { .string(RFC3339.string(from: $0)) }
        return .object(members)
    }
}

// MARK: - Markdown

extension EventCatalog {
    /// A page with one section for each event type.
    var markdown: String {
        var lines = [
            "# Events of \(app)", "",
            "Publish each event to the exchange `events` with the routing key `\(app).<event type>`, as a CloudEvent.",
            "This page is made from the rule file by `rules catalog`.", "",
            "| event | about |", "|---|---|",
        ]
        lines += events.map { "| `\($0.type)` | \(Self.cell($0.about ?? "")) |" }
        let all = exampleEvents
        for event in events { lines += Self.section(event, example: all.first { $0.type == event.type }) }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func section(_ event: EventDescription, example: DomainEvent?) -> [String] {
        var lines = ["", "## \(event.type)", ""]
        if let about = event.about { lines += [about.replacing("\n", with: " "), ""] }
        let users = event.users.map { "`\($0.place)`\($0.isConditional ? " (some events)" : "")" }
        lines += [users.isEmpty ? "No rule uses it." : "Used by \(users.joined(separator: ", ")).", ""]
        lines += ["| field of `data` | type | required by | used by | examples |", "|---|---|---|---|---|"]
        lines += event.fields.map { field in
            let examples = field.examples.map { value in
                let bytes = (try? WireCoding.encode(value)) ?? []
                return "`\(String(decoding: bytes, as: UTF8.self))`"
            }
            let required = field.requiredBy.isEmpty ? "–" : names(field.requiredBy)
            let used = field.places.isEmpty ? "–" : names(field.places)
            return
                "| `\(field.path)` | \(field.types) | \(required) | \(used) | \(cell(examples.joined(separator: ", "))) |"
        }
        guard let example else { return lines }
        return lines + ["", "```json", String(example.structured.pretty.dropLast()), "```"]
    }

    private static func names(_ places: [String]) -> String { places.map { "`\($0)`" }.joined(separator: ", ") }

    private static func cell(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("\n", with: " ")
    }
}
