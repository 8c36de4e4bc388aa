/// What was applied to a schema, as its `migration` table says.
struct AppliedMigration: Hashable, Sendable {
    let version: Int
    let name: String
    let checksum: String
}

/// Which files are still to be applied; decided without a database.
enum MigrationPlan {
    /// The database may be ahead of the directory: an older release finds the schema of a newer one, and by the rule of
    /// expand and contract it can run on it. It may not differ in what both know.
    static func pending(
        files: [MigrationFile], applied: [AppliedMigration], schema: String
    ) throws(MigrationError) -> [MigrationFile] {
        for (index, migration) in applied.enumerated() where migration.version != index + 1 {
            throw MigrationError(
                code: .gap, subject: "\(schema).migration",
                detail: "migration \(index + 1) is not recorded although \(migration.version) is; "
                    + "the table was changed by hand")
        }
        for (file, migration) in zip(files, applied) where file.checksum != migration.checksum {
            throw MigrationError(
                code: .changed, subject: file.fileName,
                detail: "the file is not the one that was applied (as \(migration.name)). Migrations are never edited: "
                    + "restore it, and put the change into a new one")
        }
        return Array(files.dropFirst(applied.count))
    }
}
