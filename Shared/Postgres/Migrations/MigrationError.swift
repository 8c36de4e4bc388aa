/// Why a schema was not brought up to date. Everything applied before it stays applied.
package struct MigrationError: Error, Equatable, Sendable {
    package enum Code: Hashable, Sendable {
        /// The directory cannot be read, or a file in it.
        case unreadable
        /// A file's name is not `NNNN_name.sql`, or its number is taken twice.
        case badName
        /// A number is missing, in the directory or in the database.
        case gap
        /// A file is not what was applied under its number.
        case changed
        /// A statement failed; the file it is in was rolled back.
        case failed
        /// Another migrator has not finished in time.
        case locked
    }

    package let code: Code
    /// The directory, file or schema it is about.
    package let subject: String
    /// What is wrong and what to do.
    package let detail: String
}

extension MigrationError: CustomStringConvertible {
    package var description: String { "\(subject): \(detail)" }
}
