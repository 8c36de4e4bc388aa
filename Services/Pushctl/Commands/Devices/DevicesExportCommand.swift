import ArgumentParser
import Foundation
import Postgres
import PushProtocol
import Synchronization

extension DevicesCommand {
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Writes all active registrations, as `import` reads them.",
            discussion: """
                It is one snapshot, on standard output or in a file that nobody else can read. Needs DATABASE_URL to be \
                that of the schema's owner.
                """)
        @Option(help: "Only this app's; every app's when it is not given.") var app: String?
        @Option(help: "ndjson or csv; what the file's name ends with, or ndjson, when it is not given.")
        var format: String?
        @Option(help: "The file to write, which must not be there yet; standard output when it is not given.")
        var output: String?
        @Flag(help: "Writes tokens in clear, for who keeps them as secrets. Otherwise they are masked.")
        var withTokens = false
        @OptionGroup var keys: TokenKeysOption

        func run() async throws {
            let app = try app.map { try AppID(named: $0) }
            let query = ExportQuery(format: try chosenFormat(), withTokens: withTokens, cipher: try keys.load())
            let file = try target()
            let exported: (count: Int, unreadable: Int)
            do {
                let isBegun = Mutex(false)
                exported = try await withInterruption {
                    try await withDatabase { database in
                        try await database.transaction { transaction in
                            // A transaction that failed is run again, and what was written stays written.
                            let wasBegun = isBegun.withLock { begun in
                                defer { begun = true }
                                return begun
                            }
                            guard !wasBegun else { throw Refusal("the database went away in the middle; export again") }
                            return try await query.run(app, in: transaction) { rows in
                                try file.write(contentsOf: Data(rows))
                            }
                        }
                    }
                }
            } catch {
                // Half an export is none.
                if let output { try? FileManager.default.removeItem(atPath: output) }
                if error is PostgresError { throw Refusal("stopped") }
                throw error
            }
            FileHandle.standardError.write(Data("\(exported.count) registrations\n".utf8))
            guard exported.unreadable == 0 else {
                FileHandle.standardError.write(
                    Data("\(exported.unreadable) tokens were changed in the database and are empty here\n".utf8))
                throw ExitCode.failure
            }
        }

        private func chosenFormat() throws -> DeviceFormat {
            guard let format else { return output.flatMap(DeviceFormat.init(path:)) ?? .ndjson }
            guard let chosen = DeviceFormat(rawValue: format) else { throw Refusal("--format is ndjson or csv") }
            return chosen
        }

        private func target() throws -> FileHandle {
            guard let output else { return .standardOutput }
            let descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw Refusal("\(output): \(String(cString: strerror(errno))); name a file that is not there yet")
            }
            return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }
    }
}
