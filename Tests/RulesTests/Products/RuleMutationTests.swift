import Testing

@testable import RuleLanguage
@testable import Rules

/// Every change of a shipped rule file fails a test.
///
/// Changes each value of the five files and removes each entry. The product's transcript must then differ, or the reader
/// must refuse the file.
@Suite(.timeLimit(.minutes(20))) struct RuleMutationTests {
    /// Parts of a rule file without an effect on decisions.
    static func isExplained(_ path: String) -> Bool {
        let keys = path.split(separator: ".")
        // An example shows an upstream event. The reader tries the rules on it.
        if keys.first == "events", path.contains(".examples") { return true }
        // A description is for readers of the file only.
        return path.hasSuffix(".about") && (keys.first == "events" || keys.first == "rules")
    }

    /// Changes without an effect, each with its reason.
    static let equivalent = [
        "monolite-hr: language: removed": "English is the default; the line tells the reader that the words are English"
    ]

    @Test(arguments: ProductTranscript.products)
    func `every change of a shipped rule file fails a test`(app: String) async throws {
        let file = try ProductTranscript.ruleFile(app)
        let transcript = try ProductTranscript(app)
        let expected = try ProductTranscript.expected(app)
        #expect(try transcript.text(rules: try RuleMutations.unchanged(file)) == expected)
        let mutations = try RuleMutations(file, isExplained: Self.isExplained).all
        #expect(mutations.count > 40)
        let survivors = try await withThrowingTaskGroup(of: [String].self) { group in
            let share = 8
            for part in 0..<share {
                group.addTask {
                    var survivors: [String] = []
                    for index in stride(from: part, to: mutations.count, by: share) {
                        // Other tests would wait for a thread, and their transactions with them.
                        await Task.yield()
                        let mutation = mutations[index]
                        guard try transcript.text(rules: mutation.text) == expected else { continue }
                        survivors.append("\(app): \(mutation.path): \(mutation.change)")
                    }
                    return survivors
                }
            }
            var all: Set<String> = []
            for try await part in group { all.formUnion(part) }
            return all
        }
        let unexplained = survivors.filter { Self.equivalent[$0] == nil }.sorted()
        #expect(unexplained.isEmpty, "\(mutations.count) changes; unnoticed:\n\(unexplained.joined(separator: "\n"))")
        let gone = Self.equivalent.keys.filter { $0.hasPrefix("\(app): ") && !survivors.contains($0) }.sorted()
        #expect(gone.isEmpty, "these changes now fail a test; remove them from the list: \(gone)")
    }
}
