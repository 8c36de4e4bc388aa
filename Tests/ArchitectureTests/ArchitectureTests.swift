import Testing

/// The plan of the house, held against every `import` in it.
@Suite struct ArchitectureTests {
    static let houses = ["Shared", "Services"]

    @Test func `every room stands in the table, and every row of the table is a room`() throws {
        let shared = try Sources.folders(in: "Shared").filter { Table.importerOfC[$0] == nil }
        let services = try Sources.folders(in: "Services")
        #expect(Set(services) == Table.services)
        #expect(Set(shared + services) == Set(Table.rooms.keys))
    }

    @Test(arguments: Table.rooms.keys.sorted()) func `a room imports only what its row allows`(room: String) throws {
        let folder = Table.services.contains(room) ? "Services/\(room)" : "Shared/\(room)"
        for found in try Sources.files(below: folder).flatMap(Sources.imports(of:)) {
            let allowed =
                Table.platform.contains(found.module) || Table.rooms[room]!.contains(found.module)
                || Table.outside[found.module, default: []].contains(room)
            #expect(allowed, "\(found.file):\(found.line): \(room) may not import \(found.module)")
        }
    }

    @Test func `no service imports another`() throws {
        for found in try Sources.files(below: "Services").flatMap(Sources.imports(of:)) {
            #expect(!Table.services.contains(found.module), "\(found.file):\(found.line): imports \(found.module)")
        }
    }

    @Test func `each C library has one importer`() throws {
        for found in try Self.houses.flatMap(Sources.files(below:)).flatMap(Sources.imports(of:)) {
            guard let importer = Table.importerOfC[found.module] else { continue }
            #expect(found.file.hasPrefix("Shared/\(importer)/"), "\(found.file):\(found.line)")
        }
    }

    @Test func `a Domain folder is pure`() throws {
        let files: [String] = Self.houses.flatMap(Sources.files(below:)).filter { $0.contains("/Domain/") }
        for found in try files.flatMap(Sources.imports(of:)) {
            let pure = Table.platform.union(Table.pure).subtracting(["Dispatch", "Glibc", "Musl", "Darwin"])
            #expect(pure.contains(found.module), "\(found.file):\(found.line): Domain may not import \(found.module)")
        }
    }

    @Test func `SQL is written only in Storage folders and in the Postgres room`() throws {
        for file in Self.houses.flatMap(Sources.files(below:))
        where try Sources.imports(of: file).contains(where: { $0.module == "Postgres" }) {
            let text = try Sources.text(of: file)
            let writesSQL = text.contains(/\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b/)
            #expect(!writesSQL || file.contains("/Storage/") || file.hasPrefix("Shared/"), "\(file)")
        }
    }

    @Test func `the top level holds what the plan names and nothing else`() throws {
        let named: Set<String> = [
            "Package.swift", "Services", "Shared", "Tests", "deploy", "docker-compose.yml", "README.md", "LICENSE",
            "CHANGELOG.md", "SECURITY.md", "Package.resolved",
        ]
        let found = try Sources.folders(in: ".").filter { !$0.hasPrefix(".") }
        #expect(Set(found).subtracting(named) == [])
    }

    @Test func `no file is longer than 400 lines`() throws {
        for file in (Self.houses + ["Tests"]).flatMap(Sources.files(below:)) {
            let lines = try Sources.text(of: file).split(separator: "\n", omittingEmptySubsequences: false).count
            #expect(lines <= 401, "\(file) has \(lines) lines")
        }
    }
}
