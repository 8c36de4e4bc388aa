import Foundation
import Testing

/// Limits the sentences that use private idioms instead of the field's terms (CONTRIBUTING.md, Writing).
@Suite struct PlainWordsTests {
    /// The highest share of such sentences in a folder. It only falls.
    static let ceiling = 0.01

    @Test(arguments: Prose.folders) func `hardly any sentence uses a private idiom`(folder: String) throws {
        let sentences = try Prose.sentences(in: folder)
        #expect(sentences.count > 200, "\(folder): too few sentences were found")
        let flagged = sentences.filter { Idioms.areUsed(in: $0.words) }
        let isPlain = Double(flagged.count) <= Double(sentences.count) * Self.ceiling
        let first = flagged.prefix(20).map { "\($0.file):\($0.line): \($0.words.joined(separator: " "))" }
        #expect(
            isPlain,
            """
            \(folder): \(flagged.count) of \(sentences.count) sentences use a private idiom. The first of them:
            \(first.joined(separator: "\n"))
            """)
    }

    @Test(arguments: [
        "What was held leaves now.", "Nobody reads it.", "The user is told once.", "It ends for good.",
        "Returns who is there.", "A queue (what it has is old) waits.", "It comes to nothing,", "nobody's row",
    ]) func `idioms are found`(sentence: String) {
        #expect(Idioms.areUsed(in: sentence.components(separatedBy: " ")))
    }

    @Test(arguments: [
        "What is a route?", "Requeues the deliveries that are not settled.", "The rights are those of the service.",
        "Returns what, is unclear.", "Hearing tests are elsewhere.", "The batch in handling waits.",
    ]) func `other sentences are not found`(sentence: String) {
        #expect(!Idioms.areUsed(in: sentence.components(separatedBy: " ")))
    }

    @Test func `sentences of comments, logs and pages are found`() {
        let code = """
            /// Returns the row. The second
            /// sentence ends here.
            let row = 1  // not at the start of its line
            logger.warning("Queue is full; publishing again")
            logger.error(
                "Route is paused", metadata: [:])
            """
        let ofCode = Prose.sentences(of: code, file: "a.swift")
        #expect(
            ofCode.map { $0.words.joined(separator: " ") } == [
                "Returns the row.", "The second sentence ends here.", "Queue is full;", "publishing again",
                "Route is paused",
            ])
        #expect(ofCode.map(\.line) == [1, 1, 4, 4, 6])
        let page = """
            # A heading

            | a cell of a table | `code` in a cell |

                indented code

            ```
            fenced code
            ```
            """
        #expect(
            Prose.sentences(of: page, file: "a.md").map { $0.words.joined(separator: " ") } == [
                "A heading", "a cell of a table |", "X in a cell |",
            ])
    }
}

/// The idioms: free relatives as subject or object, indefinite pronouns, and private words.
private enum Idioms {
    private static let subjects: Set<String> = [
        "What", "Who", "Whoever", "Whatever", "Those", "Somebody", "Nobody", "Everybody", "Whose",
    ]
    private static let relatives: Set<String> = ["what", "who", "whoever", "whatever", "those"]
    private static let verbs: Set<String> = [
        "is", "was", "were", "are", "has", "have", "had", "may", "can", "cannot", "it", "they", "nobody", "somebody",
        "comes", "waits", "follows", "goes",
    ]
    private static let words: Set<String> = [
        "affair", "somebody", "nobody", "everybody", "mended", "mend", "told", "tells", "tell", "hear", "hears",
        "heard", "somebody's", "nobody's", "everybody's",
    ]
    private static let pairs: Set<String> = ["comes to", "for good", "in hand", "by itself", "lets go"]

    /// Whether a sentence uses one. `words` are its words with their punctuation. A question may begin with *what*.
    static func areUsed(in words: [String]) -> Bool {
        let punctuation = CharacterSet.alphanumerics.inverted
        var last = ""
        var lastEndsClause = false
        for (index, word) in words.enumerated() {
            let plain = word.trimmingCharacters(in: punctuation)
            let lowercased = plain.lowercased()
            if index == 0, subjects.contains(plain), !words.contains(where: { $0.hasSuffix("?") }) { return true }
            if Self.words.contains(lowercased) { return true }
            if index > 0, !lastEndsClause, word.hasPrefix(plain) {
                if relatives.contains(last), verbs.contains(plain) { return true }
                if pairs.contains("\(last.lowercased()) \(lowercased)") { return true }
            }
            last = plain
            lastEndsClause = !word.hasSuffix(plain)
        }
        return false
    }
}

/// The sentences of the repository: in Markdown, in comments, and in log messages.
private enum Prose {
    /// The folders with a limit of their own; `.` has the pages of the top level.
    static let folders = [".", "Services", "Shared", "Tests", "deploy"]

    struct Sentence {
        let file: String
        let line: Int
        /// With their punctuation.
        var words: [String]
    }

    static func sentences(in folder: String) throws -> [Sentence] {
        var sentences: [Sentence] = []
        for file in try files(in: folder) {
            guard let text = try? Sources.text(of: file) else { continue }
            sentences += Self.sentences(of: text, file: file)
        }
        return sentences
    }

    private static func files(in folder: String) throws -> [String] {
        if folder == "." { return try Sources.folders(in: ".").filter { $0.hasSuffix(".md") } }
        let base = Sources.root.appending(path: folder)
        let enumerator = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
        var files: [String] = []
        while let url = enumerator?.nextObject() as? URL {
            // Scripts in `deploy` have no extension.
            if ["swift", "md", "sh", "py", ""].contains(url.pathExtension) {
                files.append(String(url.path.dropFirst(Sources.root.path.count + 1)))
            }
        }
        return files.sorted()
    }

    /// Joins neighbouring lines, and splits them after `.`, `;`, `:`, `!`, `?` and the `|` of tables. Leaves out
    /// sentences of a few letters.
    static func sentences(of text: String, file: String) -> [Sentence] {
        var sentences: [Sentence] = []
        var sentence: Sentence?
        func end() {
            if let ended = sentence, ended.words.joined(separator: " ").utf8.count > 8 { sentences.append(ended) }
            sentence = nil
        }
        var lastLine = 0
        for (line, prose) in lines(of: text, file: file) {
            if line != lastLine + 1 { end() }
            lastLine = line
            for word in prose.components(separatedBy: " ") where !word.isEmpty {
                if sentence == nil { sentence = Sentence(file: file, line: line, words: []) }
                sentence?.words.append(word)
                if let last = word.last, ".;:!?|".contains(last) { end() }
            }
        }
        end()
        return sentences
    }

    /// The lines with prose, counted from 1.
    private static func lines(of text: String, file: String) -> [(line: Int, prose: String)] {
        var lines: [(line: Int, prose: String)] = []
        var last = ""
        var isFenced = false
        for (index, line) in text.components(separatedBy: "\n").enumerated() {
            let code = line.trimmingCharacters(in: .whitespaces)
            var prose: String?
            if file.hasSuffix(".md") {
                if code.hasPrefix("```") {
                    isFenced.toggle()
                } else if !isFenced, !line.hasPrefix("    ") {
                    prose = code
                }
            } else if file.hasSuffix(".swift") {
                prose = code.hasPrefix("//") ? code : message(in: code, after: last)
            } else if code.hasPrefix("#"), !code.hasPrefix("#!") {
                prose = code
            }
            if let prose = prose.map(plain), !prose.isEmpty { lines.append((index + 1, prose)) }
            last = code
        }
        return lines
    }

    /// The log message in a line of Swift, or in the line after the call.
    private static func message(in code: String, after last: String) -> String? {
        let isContinued = code.hasPrefix("\"") && calls.contains { last.hasSuffix($0) }
        guard isContinued || code.contains("(\"") && calls.contains(where: { code.contains("\($0)\"") }) else {
            return nil
        }
        let parts = code.components(separatedBy: "\"")
        return parts.count > 1 ? parts[1] : nil
    }

    private static let calls = ["trace(", "debug(", "info(", "notice(", "warning(", "error(", "critical("]

    /// Without the marks of comments, headings, lists and tables; `X` stands for code.
    private static func plain(_ line: String) -> String {
        let marks = CharacterSet(charactersIn: "/|#>-* ")
        var rest = line[...]
        while let first = rest.unicodeScalars.first, marks.contains(first) { rest = rest.dropFirst() }
        let parts = rest.components(separatedBy: "`")
        guard parts.count > 2 else { return String(rest) }
        return parts.enumerated().map { index, part in
            let isCode = !index.isMultiple(of: 2) && index < parts.count - 1
            return isCode ? "X" : part
        }.joined()
    }
}
