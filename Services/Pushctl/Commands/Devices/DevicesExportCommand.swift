import ArgumentParser
import Foundation
import Postgres
import PushProtocol
import RegistryStore
import Synchronization

extension DevicesCommand {
    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Export all active registrations in the format of `import`.",
            discussion: """
                The export is one snapshot. A file is created with mode 600. Needs DATABASE_URL of the schema's owner.
                """)
        @Option(help: "Only registrations of this app.") var app: String?
        @Option(help: "ndjson or csv. Default: the file's extension, or ndjson.")
        var format: String?
        @Option(help: "The file to create; it must not exist. Default: standard output.")
        var output: String?
        @Flag(help: "Write tokens in clear text, to be kept as secrets. Otherwise they are masked.")
        var withTokens = false
        @OptionGroup var keys: TokenKeysOption

        func run() async throws {
            let app = try app.map { try AppID(named: $0) }
            let query = RegistrationExport(format: try chosenFormat(), withTokens: withTokens, cipher: try keys.load())
            let file = try target()
            let exported: (count: Int, unreadable: Int)
            do {
                let isBegun = Mutex(false)
                exported = try await withSignalCancellation {
                    try await withDatabase { database in
                        try await database.transaction { transaction in
                            // A retried transaction would write its rows twice.
                            let wasBegun = isBegun.withLock { begun in
                                defer { begun = true }
                                return begun
                            }
                            guard !wasBegun else {
                                throw CommandError("the database connection was lost during the export; export again")
                            }
                            return try await query.run(app, in: transaction) { rows in
                                try file.write(contentsOf: Data(rows))
                            }
                        }
                    }
                }
            } catch {
                // Removes an incomplete export.
                if let output { try? FileManager.default.removeItem(atPath: output) }
                if error is PostgresError { throw CommandError("stopped") }
                if let error = error as? ExportError { throw CommandError(error) }
                throw error
            }
            OutputOption.remark("\(exported.count) registrations")
            guard exported.unreadable == 0 else {
                OutputOption.remark(
                    "\(exported.unreadable) tokens were modified in the database and are exported as empty")
                throw ExitCode(CommandStatus.findings.rawValue)
            }
        }

        private func chosenFormat() throws -> DeviceFormat {
            guard let format else { return output.flatMap(DeviceFormat.init(path:)) ?? .ndjson }
            guard let chosen = DeviceFormat(rawValue: format) else {
                throw CommandError("--format is ndjson or csv", .usage)
            }
            return chosen
        }

        private func target() throws -> FileHandle {
            guard let output else { return .standardOutput }
            let descriptor = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw CommandError("\(output): \(String(cString: strerror(errno))); name a file that does not exist")
            }
            return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }
    }
}

extension CommandError {
    init(_ error: ExportError) {
        switch error {
        case .truncatedLine: self.init("the database ended a line early; export again")
        case .keysMissing:
            self.init(
                "tokens are encrypted; give the registry's keys with --token-keys FILE or REGISTRY_TOKEN_KEYS_FILE")
        case .unknownKey(let id):
            self.init("tokens are encrypted with the key “\(id)”, which the key file lacks; add it")
        }
    }
}
