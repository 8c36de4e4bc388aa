import ArgumentParser
import Foundation
import Postgres
import PushProtocol
import ServiceKit
import TokenEncryption

extension DevicesCommand {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Brings devices in from a file, as if each had registered.",
            discussion: """
                Each line is a registration: \(DeviceField.names). A line needs user, token, whose token it is (kind, \
                provider or platform) and, for APNs, the environment. registered_at is when the device was last seen; \
                without it, now. What the registry knows later things of stays as it is.

                An import that was stopped, by Ctrl-C or otherwise, goes on where it stood when the same command is \
                given again. Needs DATABASE_URL to be that of the schema's owner.
                """)
        @Argument(help: "An NDJSON file (an object a line) or a CSV file (the first line names the columns).")
        var file: String
        @Option(help: "The app of lines that name none.") var app: String?
        @Option(help: "ndjson or csv; what the file's name ends with when it is not given.") var format: String?
        @Option(help: "Where refused lines are told; FILE.refused.ndjson when it is not given.") var report: String?
        @Option(help: "The most active registrations of a user, as REGISTRY_DEVICES_PER_USER says it to the registry.")
        var devicesPerUser = 100
        @Flag(help: "Only checks every line; the database is not looked at.") var dryRun = false
        @Flag(help: "Brings the file in again, although it was brought in.") var again = false
        @Flag(help: "Does not announce new registrations one by one; takeovers and ends are announced all the same.")
        var unannounced = false
        @OptionGroup var keys: TokenKeysOption
        @OptionGroup var apps: AppsOption

        func run() async throws {
            let work = try work()
            let cipher = dryRun ? nil : try keys.load()
            do {
                let state = try await withInterruption { try await self.run(work, cipher) }
                for line in ImportProgress.summary(state, report: work.report) { print(line) }
                if state.refused > 0 { throw ExitCode.failure }
            } catch let error as PostgresError where error.code == .cancelled || error.code == .poolClosed {
                throw stopped
            } catch is CancellationError {
                throw stopped
            }
        }

        private var stopped: Refusal { Refusal("stopped; the same command goes on where it stood") }

        private func work() throws -> DeviceImport {
            guard let format = try format.map(Self.format) ?? DeviceFormat(path: file) else {
                throw Refusal("\(file): is it NDJSON or CSV? Say --format ndjson or --format csv")
            }
            guard devicesPerUser > 0 else { throw Refusal("--devices-per-user has to be 1 or more") }
            let known = Set(try apps.load().ids)
            let usual = try app.map { name in
                guard let id = AppID(rawValue: name), known.contains(id) else {
                    throw Refusal("no app “\(name)” is in the apps file")
                }
                return id
            }
            return DeviceImport(
                path: file, format: format, app: usual, apps: known, report: report ?? "\(file).refused.ndjson")
        }

        private static func format(_ name: String) throws -> DeviceFormat {
            guard let format = DeviceFormat(rawValue: name) else {
                throw Refusal("--format is ndjson or csv")
            }
            return format
        }

        private func run(_ work: DeviceImport, _ cipher: TokenCipher?) async throws -> ImportState {
            let file = try LineFile(path: work.path)
            let total = file.size
            guard !dryRun else {
                return try await Self.watched(ImportState(startedAt: Date()), total) { first, progress in
                    try await work.run(from: first, progress: progress) { batch, state, end in
                        try Task.checkCancellation()
                        return state.checked(batch, end)
                    }
                }
            }
            let (fingerprint, former) = (try file.fingerprint(work.way), try file.fingerprint(nil))
            let limit = devicesPerUser
            return try await withDatabase(Self.patient) { database in
                let store = ImportStore(
                    database, cipher: cipher ?? .none, devicesPerUser: limit, announces: !unannounced)
                try await store.requireKeys(areGiven: cipher != nil)
                if again { for known in [fingerprint, former] { try await store.forget(known) } }
                let first = try await store.begin(fingerprint, formerly: former, name: work.path)
                if let finished = first.finishedAt {
                    throw Refusal(
                        "\(work.path) was brought in at \(RFC3339.string(from: finished)); --again does it again")
                }
                let last = try await Self.watched(first, total) { first, progress in
                    try await work.run(from: first, progress: progress) { batch, state, end in
                        try await store.take(batch, of: fingerprint, after: state, end: end)
                    }
                }
                try await store.finish(fingerprint, last)
                return last
            }
        }

        /// A batch waits for devices that register meanwhile rather than to fail.
        private static func patient(_ configuration: inout PostgresConfiguration) {
            configuration.statementTimeout = .seconds(60)
            configuration.lockTimeout = .seconds(30)
        }

        /// Shows how it goes on standard error: a bar on a terminal, a line every ten seconds otherwise.
        private static func watched(
            _ first: ImportState, _ total: Int,
            _ work: (ImportState, (ImportState) -> Void) async throws -> ImportState
        ) async throws -> ImportState {
            let progress = ImportProgress(total: total, first: first)
            let begun = ContinuousClock.now
            var line = ProgressLine()
            if first.line > 0 { tell("going on after line \(first.line)\n") }
            defer { line.clear() }
            return try await work(first) { state in
                let now = ContinuousClock.now
                line.show(
                    progress.line(state, after: now - begun), plain: progress.plain(state, after: now - begun), now: now
                )
            }
        }

        private static func tell(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
    }
}

extension ImportState {
    /// Where a dry run stands after a batch.
    fileprivate func checked(_ batch: ImportBatch, _ end: (line: Int, position: Int)) -> ImportState {
        var next = self
        (next.line, next.position) = end
        next.taken += batch.entries.count
        next.refused += batch.refused.count
        return next
    }
}
