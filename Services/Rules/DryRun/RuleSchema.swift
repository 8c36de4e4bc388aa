package import ArgumentParser
import Foundation
import PushProtocol

/// The JSON Schema of rule files, for editors.
enum RuleSchema {
    /// The comment that names the schema to the YAML language server, in front of the schema's path or URL.
    static let comment = "# yaml-language-server: $schema="

    static var text: String {
        String(decoding: PackageResources.rule_file_schema_json, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    /// A hint for each file below `path` that does not name its schema.
    static func hints(_ path: String) -> [String] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { return [] }
        let names = isFolder.boolValue ? (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] : [""]
        let files = names.filter { !isFolder.boolValue || $0.hasSuffix(".yaml") }.sorted()
            .map { $0.isEmpty ? path : "\(path)/\($0)" }
        return files.compactMap { file in
            let text = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) } ?? ""
            guard !text.contains(comment) else { return nil }
            return "\(file): for completion in editors, add the line “\(comment)rule-file.schema.json”; "
                + "`rules schema` prints the schema"
        }
    }
}

extension RuleTool {
    package struct Schema: RuleToolCommand {
        package static let configuration = CommandConfiguration(
            abstract: "Print the JSON Schema of rule files, for editors.",
            discussion: """
                Store it beside the rule files, and begin each of them with the line
                \(RuleSchema.comment)rule-file.schema.json
                """)

        package init() {}

        var json: Bool { false }

        func answer(read: (String) -> Data?) -> Answer { Answer(lines: [RuleSchema.text]) }
    }
}
