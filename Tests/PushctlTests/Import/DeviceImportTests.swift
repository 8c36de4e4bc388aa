import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport
import TokenEncryption

@testable import Pushctl
@testable import RegistryStore

/// Import of a file into the registry's table, and export.
@Suite(.timeLimit(.minutes(5))) struct DeviceImportTests {
    private struct Killed: Error {}

    private static let app = AppID(rawValue: "family-portal")!

    private let folder = FileManager.default.temporaryDirectory.appending(path: "import-\(UUID().uuidString)")

    private func withFile<R>(
        _ name: String, _ lines: [String], _ body: (DeviceImport) async throws -> R
    ) async throws -> R {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: name).path
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: path))
        let app = Self.app
        return try await body(
            DeviceImport(
                path: path, format: try #require(ImportFormat(path: path)), app: app, apps: [app],
                report: "\(path).refused.ndjson"))
    }

    private static func lines(_ count: Int) -> [String] {
        (1...count).map { n in
            n.isMultiple(of: 100)
                ? #"{"user":"u\#(n)","kind":"fid"}"# : #"{"user":"u\#(n / 3)","kind":"fid","token":"token-\#(n)"}"#
        }
    }

    private func refused(_ work: DeviceImport) throws -> [Int] {
        try String(contentsOfFile: work.report, encoding: .utf8).split(separator: "\n").map {
            Int(try WireCoding.decode(JSONValue.self, from: Array($0.utf8))["line"]?.int ?? 0)
        }
    }

    @Test func `an import killed at any point continues with its next line`() async throws {
        try await withFile("devices.ndjson", Self.lines(3500)) { work in
            let fingerprint = try LineFile(path: work.path).fingerprint(nil)
            try await TestSchema.registry.withPool { pool in
                let store = ImportStore(pool, devicesPerUser: 100)
                var kills = 0
                // Killed before a batch is committed, and after.
                for (batches, isCommitted) in [(0, false), (1, true), (1, false), (Int.max, true)] {
                    var left = batches
                    let first = try await store.begin(fingerprint, name: work.path)
                    do {
                        let last = try await work.run(from: first, progress: { _ in }) { batch, state, end in
                            if left == 0, !isCommitted { throw Killed() }
                            let next = try await store.take(batch, of: fingerprint, after: state, end: end)
                            if left == 0 { throw Killed() }
                            left -= 1
                            return next
                        }
                        #expect((last.line, last.taken, last.refused, last.superseded) == (3500, 3465, 35, 0))
                        try await store.finish(fingerprint, last)
                    } catch is Killed {
                        kills += 1
                    }
                }
                #expect(kills == 3)
                #expect(try await pool.query("SELECT count(*) FROM registry.registration").single(Int.self) == 3465)
                #expect(try await pool.query("SELECT count(*) FROM registry.outbox").single(Int.self) == 3465)
                #expect(try refused(work) == (1...35).map { $0 * 100 })
            }
        }
    }

    @Test func `any line ending is accepted, and empty lines are skipped`() async throws {
        let lines = ["user,kind,token\r", "a,fid,t1\r", "", "b,fid,t2", #""c","fid","t3""#, "d,fid"]
        try await withFile("devices.csv", lines) { work in
            var seen: [Int: String] = [:]
            let state = try await work.run(
                from: ImportState(startedAt: Date()), progress: { _ in }
            ) { batch, state, end in
                for entry in batch.entries { seen[entry.line] = entry.request.token.secret }
                var next = state
                (next.line, next.position) = end
                next.refused += batch.refused.count
                return next
            }
            #expect(seen == [2: "t1", 4: "t2", 5: "t3"])
            #expect(try (state.line, state.position, state.refused) == (6, LineFile(path: work.path).size, 1))
            #expect(try refused(work) == [6])
        }
    }

    @Test func `a repeated device in a batch wins over the earlier line`() async throws {
        let lines = [
            #"{"user":"a","kind":"fid","token":"1"}"#, #"{"user":"b","kind":"fid","token":"2"}"#,
            #"{"user":"a","kind":"fid","token":"3"}"#, #"{"user":"c","kind":"fid","token":"2"}"#,
            #"{"user":"c","kind":"fid","token":"4","installation":"i"}"#,
            #"{"user":"d","kind":"fid","token":"5","installation":"i"}"#,
        ]
        try await withFile("devices.jsonl", lines) { work in
            var waves: [[Int]] = []
            _ = try await work.run(from: ImportState(startedAt: Date()), progress: { _ in }) { batch, state, end in
                waves.append(batch.entries.map(\.wave))
                #expect(batch.waves == 4)
                return state
            }
            #expect(waves == [[0, 0, 1, 1, 2, 3]])
        }
    }

    @Test func `fingerprints depend on the content`() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var prints: Set<[UInt8]> = []
        let middle = String(repeating: "x", count: 200_000)
        for text in ["", "a", "a\(middle)b", "b\(middle)b", "a\(middle)c", "a\(middle)xb"] {
            let path = folder.appending(path: "file").path
            try Data(text.utf8).write(to: URL(filePath: path))
            prints.insert(try LineFile(path: path).fingerprint(nil))
        }
        #expect(prints.count == 6)
    }

    @Test func `the same file for another app is another import`() async throws {
        try await withFile("devices.ndjson", Self.lines(3)) { work in
            let others: [(ImportFormat, String?)] = [
                (.ndjson, nil), (.ndjson, "hide-and-seek"), (.csv, "hide-and-seek"),
            ]
            var prints: Set = [try LineFile(path: work.path).fingerprint(work.mode)]
            for (format, app) in others {
                let other = DeviceImport(
                    path: work.path, format: format, app: app.flatMap(AppID.init), apps: work.apps, report: work.report)
                prints.insert(try LineFile(path: work.path).fingerprint(other.mode))
            }
            #expect(prints.count == 4)
        }
    }

    @Test func `the progress of an earlier release is adopted`() async throws {
        try await withFile("devices.ndjson", Self.lines(3)) { work in
            try await TestSchema.registry.withPool { pool in
                let store = ImportStore(pool, devicesPerUser: 100)
                let legacy = try LineFile(path: work.path).fingerprint(nil)
                let now = try LineFile(path: work.path).fingerprint(work.mode)
                try await store.finish(legacy, try await store.begin(legacy, name: work.path))
                #expect(try await store.begin(now, legacyFingerprint: legacy, name: work.path).finishedAt != nil)
                // Its fingerprint was replaced; another mode is another import.
                let other = try LineFile(path: work.path).fingerprint("csv -")
                #expect(try await store.begin(other, legacyFingerprint: legacy, name: work.path).finishedAt == nil)
            }
        }
    }

    @Test func `a report with a truncated last line is continued`() async throws {
        try await withFile("devices.ndjson", Self.lines(3)) { work in
            let text = "{\"line\":1,\"why\":\"x\"}\n{\"line\":2,\"wh"
            try Data(text.utf8).write(to: URL(filePath: work.report))
            let report = try RejectionReport(path: work.report, keepingUntil: 3)
            try report.append([])
            #expect(try refused(work) == [1])
        }
    }

    @Test(arguments: [
        "my notes\n", "{\"line\":1}\n", "{\"line\":1,\"why\":\"x\"}\n{\"line\":2,\"why\":\"x\",\"user\":\"a\"}\n",
        "\u{fffd}",
    ])
    func `a file that is not a report is not overwritten`(_ text: String) async throws {
        try await withFile("devices.ndjson", Self.lines(3)) { work in
            // The last one is not valid UTF-8.
            let bytes = text == "\u{fffd}" ? Data([0xff, 0xfe, 0x00]) : Data(text.utf8)
            try bytes.write(to: URL(filePath: work.report))
            await #expect(throws: CommandError.self) {
                try await work.run(from: ImportState(startedAt: Date()), progress: { _ in }) { _, state, _ in state }
            }
            #expect(try Data(contentsOf: URL(filePath: work.report)) == bytes)
        }
    }

    static func cipher(id: String = "k1", byte: UInt8 = 1) throws -> TokenCipher {
        try TokenCipher(
            file: Array("\(id):\(Data(repeating: byte, count: 32).base64EncodedString())".utf8))
    }

    @Test(arguments: [false, true])
    func `an export with clear tokens can be imported elsewhere`(isEncrypted: Bool) async throws {
        let lines = [
            #"{"user":"a, \"b\"","kind":"live-activity","environment":"development","token":"ab12","scope":"s","installation":"i","#
                + #""topic":"com.x","locale":"de","time_zone":"UTC","app_version":"1","registered_at":"2026-01-02T03:04:05.678Z"}"#,
            #"{"user":"é","kind":"fid","token":"\"F\\,1"}"#,
        ]
        try await withFile("devices.ndjson", lines) { work in
            let keys = try Self.cipher()
            try await TestSchema.registry.withPool { pool in
                try await bring(work, into: pool, isEncrypted ? keys : .none)
                let original = try await content(pool)
                for format in DeviceFormat.allCases {
                    let text = try await export(
                        RegistrationExport(format: format, withTokens: true, cipher: keys), nil, pool)
                    try await withFile("exported.\(format.rawValue)", [text]) { exported in
                        try await TestSchema.registry.withPool { other in
                            try await bring(exported, into: other, isEncrypted ? keys : .none)
                            #expect(try await content(other) == original)
                        }
                    }
                    let masked = try await export(
                        RegistrationExport(format: format, withTokens: false, cipher: keys), Self.app, pool)
                    #expect(masked.contains("masked_token") && masked.contains("4 characters"))
                    #expect(!masked.contains("F\\\\,1") && !masked.contains("ab12\""))
                    let none = try await export(
                        RegistrationExport(format: format, withTokens: true), AppID(rawValue: "hide-and-seek"), pool)
                    #expect(none.split(separator: "\n").count == (format == .csv ? 1 : 0))
                }
            }
        }
    }

    @Test(arguments: DeviceFormat.allCases)
    func `an encrypted export without the key fails with a hint, and a modified token is empty`(
        format: DeviceFormat
    ) async throws {
        let lines = [#"{"user":"a","kind":"fid","token":"F1"}"#, #"{"user":"b","kind":"fid","token":"F2"}"#]
        try await withFile("devices.ndjson", lines) { work in
            try await TestSchema.registry.withPool { pool in
                try await bring(work, into: pool, try Self.cipher())
                for withTokens in [false, true] {
                    for cipher in [nil, try Self.cipher(id: "k2")] {
                        let refusal = await #expect(throws: ExportError.self) {
                            try await export(
                                RegistrationExport(format: format, withTokens: withTokens, cipher: cipher), nil, pool)
                        }
                        let told = refusal.map { CommandError($0).description } ?? ""
                        #expect(told.contains(cipher == nil ? "--token-keys FILE" : "“k1”"), "\(told)")
                    }
                }
                try await pool.execute("UPDATE registry.registration SET token = 'v1 k1 AAAA' WHERE user_id = 'a'")
                let query = RegistrationExport(format: format, withTokens: true, cipher: try Self.cipher())
                let unreadable = try await pool.transaction { transaction in
                    try await query.run(nil, in: transaction) { _ in }.unreadable
                }
                #expect(unreadable == 1)
                let text = try await export(query, nil, pool)
                #expect(text.contains("F2") && !text.contains("F1") && !text.contains("v1 k1"))
            }
        }
    }

    @Test func `an import encrypts tokens like the registry, or fails`() async throws {
        try await TestSchema.registry.withPool { pool in
            func refusal(_ cipher: TokenCipher?) async throws -> String? {
                let store = ImportStore(pool, cipher: cipher ?? .none, devicesPerUser: 100)
                do { try await store.requireKeys(areGiven: cipher != nil) } catch let error as ImportError {
                    return CommandError(error).description
                }
                return nil
            }
            #expect(try await refusal(nil) == nil, "the registry has not started yet")
            let folder = try TemporaryFolder()
            let line = "k1:\(Data(repeating: 1, count: 32).base64EncodedString())"
            let keys = try TokenKeys(file: try folder.write("keys", line), logger: .silent)
            _ = try await TokenRewriteStore(pool, tokens: keys).advance()
            #expect(try await refusal(try Self.cipher()) == nil)
            #expect(try await refusal(nil)?.contains("--token-keys") == true)
            #expect(try await refusal(try Self.cipher(id: "k2"))?.contains("“k1”") == true)
            #expect(try await refusal(try Self.cipher(byte: 9))?.contains("differs from the registry's") == true)
        }
    }

    private func bring(
        _ work: DeviceImport, into pool: PostgresPool, _ cipher: TokenCipher = .none
    ) async throws {
        let store = ImportStore(pool, cipher: cipher, devicesPerUser: 100)
        let fingerprint = try LineFile(path: work.path).fingerprint(nil)
        let first = try await store.begin(fingerprint, name: work.path)
        let last = try await work.run(from: first, progress: { _ in }) { batch, state, end in
            try await store.take(batch, of: fingerprint, after: state, end: end)
        }
        #expect((last.taken, last.refused) == (2, 0))
    }

    private func content(_ pool: PostgresPool) async throws -> [String] {
        try await pool.query(
            """
            SELECT (to_jsonb(r) - 'state_changed_at' - 'registered_at')::text
                || date_trunc('milliseconds', r.registered_at)::text
            FROM registry.registration r ORDER BY device_id
            """
        ).map { try $0.decode(String.self, at: 0) }
    }

    private func export(_ query: RegistrationExport, _ app: AppID?, _ pool: PostgresPool) async throws -> String {
        try await pool.transaction { transaction in
            var bytes: [UInt8] = []
            _ = try await query.run(app, in: transaction) { bytes += $0 }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}
