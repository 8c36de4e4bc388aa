import Foundation
import Testing
import TestSupport

@testable import Console

@Suite struct AuditLogTests {
    private func entry(_ number: Int) -> AuditEntry {
        AuditEntry(
            at: Date(timeIntervalSince1970: 1_767_225_600 + Double(number)), person: "Kim", role: .operate,
            action: .revoked, app: "portal", subject: "e-\(number)\n\"", reason: "wrong", result: "done")
    }

    @Test func `entries are appended, and read latest first`() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/audit.jsonl"
        let (one, other) = (try AuditLog(path: path), try AuditLog(path: path))
        for number in 0..<10 { try await (number.isMultiple(of: 2) ? one : other).append(entry(number)) }
        #expect(try await one.last(3) == [entry(9), entry(8), entry(7)])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func `a damaged line is left out`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("audit.jsonl", "{\"at\":\n")
        let log = try AuditLog(path: path)
        try await log.append(entry(1))
        #expect(try await log.last(10) == [entry(1)])
    }

    @Test func `a folder that does not exist is named`() {
        #expect(throws: (any Error).self) { try AuditLog(path: "/nowhere/audit.jsonl") }
    }
}
