import Testing

/// Checks every `import` against the module table.
@Suite struct ArchitectureTests {
    static let sourceFolders = ["Shared", "Services"]

    @Test func `every module is in the table, and every row is a module`() throws {
        let shared = try Sources.folders(in: "Shared").filter { ImportRules.cModuleImporters[$0] == nil }
        let services = try Sources.folders(in: "Services")
        #expect(Set(services) == ImportRules.services)
        #expect(Set(shared + services).union(ImportRules.folders.keys) == Set(ImportRules.modules.keys))
    }

    @Test func `every source file of a service is in the folder of a module`() {
        let folders = ImportRules.modules.keys.map(ImportRules.folder(of:))
        for file in Sources.files(below: "Services") {
            #expect(folders.contains { file.hasPrefix("\($0)/") }, "\(file)")
        }
    }

    @Test(arguments: ImportRules.modules.keys.sorted()) func `a module imports only the modules in its row`(
        module: String
    ) throws {
        for found in try ImportRules.files(of: module).flatMap(Sources.imports(of:)) {
            let allowed =
                ImportRules.platform.contains(found.module) || ImportRules.modules[module]!.contains(found.module)
                || ImportRules.externalModules[found.module, default: []].contains(module)
            #expect(allowed, "\(found.file):\(found.line): \(module) may not import \(found.module)")
        }
    }

    @Test func `no service imports another`() throws {
        for found in try Sources.files(below: "Services").flatMap(Sources.imports(of:)) {
            #expect(
                !ImportRules.services.contains(found.module), "\(found.file):\(found.line): imports \(found.module)")
        }
    }

    @Test func `each C library has one importer`() throws {
        for found in try Self.sourceFolders.flatMap(Sources.files(below:)).flatMap(Sources.imports(of:)) {
            guard let importer = ImportRules.cModuleImporters[found.module] else { continue }
            #expect(found.file.hasPrefix("Shared/\(importer)/"), "\(found.file):\(found.line)")
        }
    }

    @Test func `a pure module and a Domain folder import pure modules only`() throws {
        let pure = ImportRules.platform.subtracting(ImportRules.platformIO).union(ImportRules.pureModules)
            .union(ImportRules.pureExternalModules)
        let modules: [String] = ImportRules.pureModules.flatMap(ImportRules.files(of:))
        let folders: [String] = Self.sourceFolders.flatMap(Sources.files(below:)).filter { $0.contains("/Domain/") }
        for found in try (modules + folders).flatMap(Sources.imports(of:)) {
            #expect(pure.contains(found.module), "\(found.file):\(found.line): \(found.module) is not pure")
        }
    }

    @Test func `SQL is only in Storage folders and in the Postgres module`() throws {
        for file in Self.sourceFolders.flatMap(Sources.files(below:))
        where try Sources.imports(of: file).contains(where: { $0.module == "Postgres" }) {
            let text = try Sources.text(of: file)
            let writesSQL = text.contains(/\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b/)
            #expect(!writesSQL || file.contains("/Storage/") || file.hasPrefix("Shared/"), "\(file)")
        }
    }

    /// The files of pushctl with SQL. They move to rules once its tables are in a module of their own.
    static let filesWithSQL = ["Services/Pushctl/Storage/DeadRowTable+Rules.swift"]

    @Test func `pushctl has no SQL of its own`() throws {
        for file in Sources.files(below: "Services/Pushctl") where !Self.filesWithSQL.contains(file) {
            let text = try Sources.text(of: file)
            let hasSQL = text.contains(
                /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|SQL)\b|\.(query|execute|copy)\(|DeadRowTable\(/)
            #expect(!hasSQL, "\(file)")
        }
    }

    @Test func `the top level has only the planned files`() throws {
        let named: Set<String> = [
            "Package.swift", "Services", "Shared", "Tests", "deploy", "docker-compose.yml", "README.md", "LICENSE",
            "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Package.resolved",
        ]
        let found = try Sources.folders(in: ".").filter { !$0.hasPrefix(".") }
        #expect(Set(found).subtracting(named) == [])
    }

    @Test func `no file is longer than 400 lines`() throws {
        for file in (Self.sourceFolders + ["Tests"]).flatMap(Sources.files(below:)) {
            let lines = try Sources.text(of: file).split(separator: "\n", omittingEmptySubsequences: false).count
            #expect(lines <= 401, "\(file) has \(lines) lines")
        }
    }
}
