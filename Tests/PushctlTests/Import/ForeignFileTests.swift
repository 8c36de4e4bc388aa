import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl
@testable import RegistryStore

/// Whole files of other systems.
@Suite struct ForeignFileTests {
    private static let app = AppID(rawValue: "family-portal")!

    /// Imports a text without a database.
    private func run(
        _ text: String, _ format: ImportFormat, _ options: ImportOptions = .init(), from position: ImportState? = nil
    ) async throws -> (tokens: [Int: [String]], state: ImportState, refused: [(reason: String, count: Int)]) {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = try folder.write("export", text)
        let work = DeviceImport(
            path: path, format: format, app: Self.app, apps: [Self.app], report: "\(path).refused.ndjson",
            options: options)
        var tokens: [Int: [String]] = [:]
        let state = try await work.run(
            from: position ?? ImportState(startedAt: Date()), progress: { _ in }
        ) { batch, state, end in
            for entry in batch.entries { tokens[entry.line, default: []].append(entry.request.token.secret) }
            var next = state
            (next.line, next.position) = end
            next.refused += batch.refused.count
            return next
        }
        return (tokens, state, try RejectionReport.reasons(in: work.report))
    }

    private static let installations = """
        [ {"deviceToken":"t1","operatingSystem":"android","alias":"a","categories":[{"name":"x"}]},
          {"deviceToken":"t2","operatingSystem":"android"},
          {"deviceToken":"t3","operatingSystem":"android","alias":"c"} ]
        """

    @Test func `an array on any number of lines is read object by object`() async throws {
        for text in [
            Self.installations, Self.installations.replacing("\n", with: ""), "\u{feff}\(Self.installations)\n",
        ] {
            let found = try await run(text, .aeroGear)
            #expect(found.tokens == [1: ["t1"], 3: ["t3"]])
            #expect(found.state.line == 3 && found.state.position == text.utf8.count)
            #expect(found.refused.map(\.count) == [1] && found.refused.first?.reason.contains("alias") == true)
        }
    }

    @Test func `an array continues after the last stored object`() async throws {
        var state = ImportState(startedAt: Date())
        state.line = 1
        let first = try #require(Self.installations.firstRange(of: "]}"))
        state.position = Self.installations[..<first.upperBound].utf8.count
        let found = try await run(Self.installations, .aeroGear, from: state)
        #expect(found.tokens == [3: ["t3"]] && found.state.line == 3)
    }

    @Test func `requests of gorush are read from one body or from a log of bodies`() async throws {
        let first = #"{"notifications":[{"tokens":["a","b"],"platform":2,"u":1},{"tokens":["c"],"platform":3,"u":1}]}"#
        let second = #"{"notifications":[{"tokens":["d e","f"],"platform":2,"u":2}]}"#
        var options = ImportOptions()
        options.userMember = "u"
        let found = try await run("\(first)\n\(second)\n", .gorush, options)
        #expect(found.tokens == [1: ["a", "b"], 3: ["f"]])
        #expect(found.state.refused == 2 && found.refused.count == 2)
    }

    @Test func `an export of OneSignal counts its header and names its reasons`() async throws {
        let lines = [
            "id,identifier,device_type,invalid_identifier,external_user_id", "1,x:1,1,f,a", "2,x:2,1,t,a",
            "3,x:3,1,t,b",
            "4,x:4,1,f,",
        ]
        let found = try await run(lines.joined(separator: "\r\n"), .oneSignal)
        #expect(found.tokens == [2: ["x:1"]] && found.state.line == 5)
        #expect(found.refused.map(\.count) == [2, 1] && found.refused[0].reason == "unsubscribed in OneSignal")
        let summary = ImportProgress.summary(found.state, report: "r", reasons: found.refused)
        let expected = [
            "3 refused: see r for each line and reason", "  2  unsubscribed in OneSignal",
            "  1  user is missing: external_user_id is empty",
        ]
        #expect(Array(summary.dropFirst()) == expected)
    }

    @Test(arguments: [
        ("\u{1f}\u{8b}", "gunzip"), (#"[{"deviceToken":"SECRET"}, {"dev"#, "incomplete"),
        ("SECRET,b", "lacks the columns"),
    ])
    func `a file that cannot be an export is refused before its first record`(_ text: String, _ reason: String)
        async throws
    {
        let format: ImportFormat = text.hasPrefix("[") ? .aeroGear : .oneSignal
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let path = "\(folder.path)/export"
        let bytes = text.hasPrefix("\u{1f}") ? Data([0x1f, 0x8b, 8, 0]) : Data(text.utf8)
        try bytes.write(to: URL(filePath: path))
        let work = DeviceImport(path: path, format: format, app: Self.app, apps: [Self.app], report: "\(path).refused")
        let error = await #expect(throws: CommandError.self) {
            _ = try await work.run(from: ImportState(startedAt: Date()), progress: { _ in }) { _, state, _ in state }
        }
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains("SECRET") == false)
    }
}
