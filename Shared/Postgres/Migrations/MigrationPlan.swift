/// A row of a schema's `migration` table.
struct AppliedMigration: Hashable, Sendable {
    let version: Int
    let name: String
    let checksum: String
}

/// Determines the pending migrations. Pure.
enum MigrationPlan {
    /// Returns the files to apply. The database may have newer migrations than the directory: after a rollback, an
    /// older release runs on a newer schema (expand and contract). Migrations in both must be identical.
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
                detail: "the file differs from the applied migration (\(migration.name)). Migrations are never edited: "
                    + "restore it, and add the change as a new migration")
        }
        return Array(files.dropFirst(applied.count))
    }
}
