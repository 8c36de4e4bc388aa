import Foundation
import Testing

/// Compares ARCHITECTURE.md with the code, and the links of all pages to declarations with the declarations.
@Suite struct ArchitecturePageTests {
    /// A link to a declaration has the form `path.swift#Name`.
    @Test func `every link to a declaration names one of its file`() throws {
        var links = 0
        for page in try LinkTests.documents() {
            let folder = Sources.root.appending(path: page).deletingLastPathComponent()
            for match in try Sources.text(of: page).matches(of: /\]\(([^)\s#]+\.swift)#([^)\s]+)\)/) {
                let (path, name) = (String(match.1), String(match.2))
                links += 1
                let text = (try? String(contentsOf: folder.appending(path: path), encoding: .utf8)) ?? ""
                #expect(Self.declares(name, in: text), "\(page): \(path)#\(name): the file does not declare \(name)")
            }
        }
        #expect(links > 60)
    }

    @Test func `declarations are found, and uses are not`() {
        let text = """
            /// The struct Comment is not declared.
            package final class Sender: Sendable {
                case accepted(id: Int), expired
                static func send(_ push: Push) {
                    switch push { case .skipped(let reason): break }
                }
            }
            extension Topology.Queue {}
            """
        for name in ["Sender", "accepted", "expired", "send", "Topology"] {
            #expect(Self.declares(name, in: text), "\(name)")
        }
        for name in ["Comment", "Push", "skipped", "Send", "Queue", "init"] {
            #expect(!Self.declares(name, in: text), "\(name)")
        }
    }

    @Test func `the module table and the picture name every target of the package, and no other`() throws {
        let targets = try Self.targets()
        let table = try Self.namesInTable()
        #expect(table.sorted() == targets.sorted(), "the table below the heading Modules")
        let picture = try Self.drawnImports()
        let drawn = picture.values.reduce(Set(picture.keys)) { $0.union($1) }
        #expect(drawn.sorted() == targets.sorted(), "the picture below the heading Modules")
    }

    /// The picture leaves out an import that follows from others.
    @Test func `the picture has the imports of ImportRules`() throws {
        let drawn = Self.closure(of: try Self.drawnImports())
        var imports = ImportRules.modules
        for (library, importer) in ImportRules.cModuleImporters { imports[importer, default: []].insert(library) }
        let allowed = Self.closure(of: imports)
        for module in try Self.targets().sorted() {
            let (inPicture, inRules) = (drawn[module] ?? [], allowed[module] ?? [])
            #expect(
                inPicture.sorted() == inRules.sorted(),
                "ARCHITECTURE.md: draw the imports of \(module), except those that follow from others")
        }
    }
}

// MARK: - Declarations

extension ArchitecturePageTests {
    private static let keywords: Set<String> = [
        "struct", "enum", "class", "actor", "protocol", "func", "var", "let", "typealias", "extension",
    ]

    /// Whether a line of `text` declares `name`. Comments do not count, and neither do the patterns of a `switch`.
    private static func declares(_ name: String, in text: String) -> Bool {
        for line in text.components(separatedBy: "\n") where line.contains(name) {
            let code = line.trimmingCharacters(in: .whitespaces)
            guard !code.hasPrefix("//") else { continue }
            let words = code.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init)
            if name == "init", words.contains(name) { return true }
            for (word, next) in zip(words, words.dropFirst()) where next == name && keywords.contains(word) {
                return true
            }
            let isCase = code.hasPrefix("case ") || code.hasPrefix("indirect case ")
            if isCase, words.contains(name), !code.contains(".\(name)") { return true }
        }
        return false
    }
}

// MARK: - Modules

extension ArchitecturePageTests {
    /// The targets of Package.swift, without tests and benches.
    private static func targets() throws -> Set<String> {
        let package = try Sources.text(of: "Package.swift")
        let start = try #require(package.range(of: "\n    targets: [")?.upperBound)
        var targets: Set<String> = []
        for match in String(package[start...]).matches(of: /(\w+)\(\s*(?:name: )?"([A-Z]\w*)"/)
        where !["tests", "bench", "executableTarget"].contains(String(match.1)) {
            targets.insert(String(match.2))
        }
        return targets.subtracting(["TestSupport"])
    }

    /// The lines of ARCHITECTURE.md from the heading Modules to the next one.
    private static func lines() throws -> [String] {
        var lines: [String] = []
        var isInside = false
        for line in try Sources.text(of: "ARCHITECTURE.md").components(separatedBy: "\n") {
            if line.hasPrefix("## ") {
                isInside = line == "## Modules"
            } else if isInside {
                lines.append(line)
            }
        }
        return lines
    }

    /// The module names in the first column of the table.
    private static func namesInTable() throws -> [String] {
        var names: [String] = []
        for line in try lines() where line.hasPrefix("| `") {
            let column = line.components(separatedBy: "|")[1]
            names += column.matches(of: /`(\w+)`/).map { String($0.1) }
        }
        return names
    }

    /// The arrows of the picture, by importer. `A --> B & C` is two arrows.
    private static func drawnImports() throws -> [String: Set<String>] {
        var imports: [String: Set<String>] = [:]
        for line in try lines() where line.contains("-->") {
            let sides = line.components(separatedBy: "-->")
            let imported = names(in: sides[1])
            for importer in names(in: sides[0]) { imports[importer, default: []].formUnion(imported) }
        }
        return imports
    }

    private static func names(in side: String) -> [String] {
        side.components(separatedBy: "&").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// Adds the imports of imported modules to each module's imports.
    private static func closure(of imports: [String: Set<String>]) -> [String: Set<String>] {
        var closure = imports
        var isComplete = false
        while !isComplete {
            isComplete = true
            for (module, imported) in closure {
                var all = imported
                for other in imported { all.formUnion(closure[other, default: []]) }
                if all != imported {
                    closure[module] = all
                    isComplete = false
                }
            }
        }
        return closure
    }
}
