internal import Crypto
internal import Foundation

/// A migration file, `NNNN_name.sql`.
package struct MigrationFile: Hashable, Sendable {
    /// The number `NNNN`. The first migration is 1.
    package let version: Int
    package let name: String
    /// SHA-256 of the file, in hexadecimal.
    package let checksum: String
    /// The SQL statements.
    let script: String

    package var fileName: String {
        let digits = String(version)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "_\(name).sql"
    }

    init(fileName: String, contents: [UInt8]) throws(MigrationError) {
        guard let match = fileName.wholeMatch(of: /([0-9]{4})_([a-z0-9_]+)\.sql/), let version = Int(match.1) else {
            throw MigrationError(
                code: .badName, subject: fileName,
                detail: "a migration is named NNNN_name.sql: four digits, then lower-case letters, digits and _")
        }
        guard let script = String(validating: contents, as: UTF8.self) else {
            throw MigrationError(code: .unreadable, subject: fileName, detail: "the file is not UTF-8")
        }
        self.version = version
        name = String(match.2)
        checksum = SHA256.hash(data: contents).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        self.script = script
    }

    /// Reads the `.sql` files of a directory, in the order of their numbers.
    ///
    /// - Throws: Also for a number that is missing or used twice.
    static func read(directory: String) throws(MigrationError) -> [MigrationFile] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            throw MigrationError(code: .unreadable, subject: directory, detail: "the directory cannot be read")
        }
        var files: [MigrationFile] = []
        for name in names.sorted() where name.hasSuffix(".sql") && !name.hasPrefix(".") {
            guard let contents = FileManager.default.contents(atPath: "\(directory)/\(name)") else {
                throw MigrationError(code: .unreadable, subject: name, detail: "the file cannot be read")
            }
            files.append(try MigrationFile(fileName: name, contents: Array(contents)))
        }
        try checkSequence(files)
        return files
    }

    /// Checks that the numbers are 1, 2, 3 and so on.
    static func checkSequence(_ files: [MigrationFile]) throws(MigrationError) {
        for (index, file) in files.enumerated() where file.version != index + 1 {
            if index > 0, files[index - 1].version == file.version {
                throw MigrationError(
                    code: .badName, subject: file.fileName,
                    detail: "\(files[index - 1].fileName) has the same number; give the newer one the next number")
            }
            throw MigrationError(
                code: .gap, subject: file.fileName,
                detail: "migration \(index + 1) is missing before it; numbers run from 0001 without a gap")
        }
    }
}
