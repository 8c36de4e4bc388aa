/// The reason for a failed migration. Migrations applied before stay applied.
package struct MigrationError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The directory or a file cannot be read.
        case unreadable
        /// A file's name is not `NNNN_name.sql`, or its number is not unique.
        case badName
        /// A number is missing, in the directory or in the database.
        case gap
        /// A file differs from the migration applied under its number.
        case changed
        /// A statement failed; its file was rolled back.
        case failed
        /// Another migrator or transaction did not release a lock in time.
        case locked
    }

    package let code: Code
    /// The directory, file or schema with the error.
    package let subject: String
    /// The problem and the next step.
    package let detail: String
}

extension MigrationError: CustomStringConvertible {
    package var description: String { "\(subject): \(detail)" }
}
