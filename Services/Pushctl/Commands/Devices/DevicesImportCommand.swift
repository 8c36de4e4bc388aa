import ArgumentParser
import Foundation
import Postgres
import PushProtocol
import RegistryStore
import ServiceKit
import TokenEncryption

extension DevicesCommand {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Import registrations from a file.",
            discussion: """
                Each line is a registration with these fields: \(DeviceField.names). Required are user, token, one of kind, \
                provider and platform, and for APNs the environment. registered_at is when the device was last seen; \
                default: now. A registration with newer data in the registry is not changed.

                Formats of other systems: onesignal (CSV export of subscriptions), firebase-csv (FCM tokens of your own \
                table), gorush (request bodies), aerogear (installations of a variant, JSON). deploy/operations/moving-in \
                describes the moves.

                Run the same command again to continue an interrupted import. Needs DATABASE_URL of the schema's owner.
                """)
        @Argument(help: "The file. A CSV file has the names of its columns in the first line.")
        var file: String
        @Option(help: "The app of lines without one.") var app: String?
        @Option(help: "One of \(ImportFormat.names). Default: ndjson or csv, by the file's extension.")
        var format: String?
        @Option(help: "The APNs environment of lines without one: production or development.")
        var environment: String?
        @Option(help: "The platform of lines without one: ios or android.") var platform: String?
        @Option(help: "The columns of a csv or firebase-csv file: token=NAME,user=NAME,… Other columns are ignored.")
        var columns: String?
        @Option(help: "gorush: the member of a notification that names its user. Default: data.user_id.")
        var userMember: String?
        @Option(help: "The file for refused lines. Default: FILE.refused.ndjson.") var report: String?
        @Option(help: "The maximum active registrations of a user, the registry's REGISTRY_DEVICES_PER_USER.")
        var devicesPerUser = 100
        @Flag(help: "Only check every line, without the database.") var dryRun = false
        @Flag(help: "Import the file again.") var again = false
        @Flag(help: "Do not announce each new registration. Takeovers and ended registrations are still announced.")
        var unannounced = false
        @OptionGroup var keys: TokenKeysOption
        @OptionGroup var apps: AppsOption
        @OptionGroup var output: OutputOption

        func run() async throws {
            let work = try work()
            let cipher = dryRun ? nil : try keys.load()
            do {
                let state = try await withSignalCancellation { try await self.run(work, cipher) }
                let reasons = state.refused > 0 ? try RejectionReport.reasons(in: work.report) : []
                try output.write(
                    ImportProgress.json(state, report: work.report),
                    text: ImportProgress.summary(state, report: work.report, reasons: reasons))
                if state.refused > 0 { throw ExitCode(CommandStatus.findings.rawValue) }
            } catch let error as PostgresError where error.code == .cancelled || error.code == .poolClosed {
                throw stopped
            } catch is CancellationError {
                throw stopped
            } catch let error as ImportError {
                throw CommandError(error)
            }
        }

        private var stopped: CommandError { CommandError("stopped; run the same command to continue") }

        private func work() throws -> DeviceImport {
            guard let format = try format.map(Self.format) ?? ImportFormat(path: file) else {
                throw CommandError("\(file): unknown format; --format is one of \(ImportFormat.names)", .usage)
            }
            guard devicesPerUser > 0 else { throw CommandError("--devices-per-user must be 1 or more", .usage) }
            let known = Set(try apps.load().ids)
            let usual = try app.map { name in
                guard let id = AppID(rawValue: name), known.contains(id) else {
                    throw CommandError("no app “\(name)” is in the apps file", .notFound)
                }
                return id
            }
            return DeviceImport(
                path: file, format: format, app: usual, apps: known, report: report ?? "\(file).refused.ndjson",
                options: try options(of: format))
        }

        private static func format(_ name: String) throws -> ImportFormat {
            guard let format = ImportFormat(rawValue: name) else {
                throw CommandError("--format is one of \(ImportFormat.names)", .usage)
            }
            return format
        }

        private func options(of format: ImportFormat) throws -> ImportOptions {
            guard columns == nil || format == .csv || format == .firebaseCSV else {
                throw CommandError("--columns is for csv and firebase-csv")
            }
            guard userMember == nil || format == .gorush else { throw CommandError("--user-member is for gorush") }
            do throws(LineError) {
                return try ImportOptions(
                    environment: environment, platform: platform, columns: columns, userMember: userMember)
            } catch {
                throw CommandError(error.description)
            }
        }

        private func run(_ work: DeviceImport, _ cipher: TokenCipher?) async throws -> ImportState {
            let file = try LineFile(path: work.path)
            let total = file.size
            guard !dryRun else {
                return try await Self.withProgress(ImportState(startedAt: Date()), total) { first, progress in
                    try await work.run(from: first, progress: progress) { batch, state, end in
                        try Task.checkCancellation()
                        return state.checked(batch, end)
                    }
                }
            }
            let (fingerprint, legacy) = (try file.fingerprint(work.mode), try file.fingerprint(nil))
            let limit = devicesPerUser
            return try await withDatabase(Self.importTimeouts) { database in
                let store = ImportStore(
                    database, cipher: cipher ?? .none, devicesPerUser: limit, announces: !unannounced)
                try await store.requireKeys(areGiven: cipher != nil)
                if again { for known in [fingerprint, legacy] { try await store.forget(known) } }
                let first = try await store.begin(fingerprint, legacyFingerprint: legacy, name: work.path)
                if let finished = first.finishedAt {
                    throw CommandError(
                        "\(work.path) was imported at \(RFC3339.string(from: finished)); import it again with --again")
                }
                let last = try await Self.withProgress(first, total) { first, progress in
                    try await work.run(from: first, progress: progress) { batch, state, end in
                        try await store.take(batch, of: fingerprint, after: state, end: end)
                    }
                }
                try await store.finish(fingerprint, last)
                return last
            }
        }

        /// A batch waits for concurrent registrations instead of failing.
        private static func importTimeouts(_ configuration: inout PostgresConfiguration) {
            configuration.statementTimeout = .seconds(60)
            configuration.lockTimeout = .seconds(30)
        }

        /// Shows progress on standard error: a bar on a terminal, otherwise a line every ten seconds.
        private static func withProgress(
            _ first: ImportState, _ total: Int,
            _ work: (ImportState, (ImportState) -> Void) async throws -> ImportState
        ) async throws -> ImportState {
            let progress = ImportProgress(total: total, first: first)
            let begun = ContinuousClock.now
            var line = ProgressLine()
            if first.line > 0 { OutputOption.remark("continuing after line \(first.line)") }
            defer { line.clear() }
            return try await work(first) { state in
                let now = ContinuousClock.now
                line.show(
                    progress.line(state, after: now - begun), plain: progress.plain(state, after: now - begun), now: now
                )
            }
        }
    }
}

extension CommandError {
    init(_ error: ImportError) {
        switch error {
        case .keysMissing:
            self.init("the registry encrypts tokens; give its keys with --token-keys FILE or REGISTRY_TOKEN_KEYS_FILE")
        case .otherKey(let expected, let given):
            self.init(
                "the registry encrypts with the key “\(expected)”, but the key file starts with “\(given)”; use the registry's file"
            )
        case .differentKey(let id):
            self.init("the key “\(id)” in the key file differs from the registry's; use the registry's file")
        case .removed:
            self.init("the import was removed from registry.import; start it again")
        case .concurrent:
            self.init("another process is importing the same file; this one stopped without repeating anything")
        }
    }
}

extension ImportState {
    /// The state of a dry run after a batch.
    fileprivate func checked(_ batch: ImportBatch, _ end: (line: Int, position: Int)) -> ImportState {
        var next = self
        (next.line, next.position) = end
        next.taken += batch.entries.count
        next.refused += batch.refused.count
        return next
    }
}
