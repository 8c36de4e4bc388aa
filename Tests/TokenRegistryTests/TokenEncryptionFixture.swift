import Foundation
import Postgres
import PushProtocol
import TestSupport
import TokenEncryption

@testable import TokenRegistry

/// Files of keys, and looks at how tokens are stored.
enum TokenEncryptionFixture {
    static func key(_ id: String, _ byte: UInt8) -> String {
        "\(id):\(Data(repeating: byte, count: 32).base64EncodedString())"
    }

    static let first = key("k1", 1)
    static let second = key("k2", 2)

    static func keys(
        _ lines: String..., in folder: TemporaryFolder, log: CapturingLogger = CapturingLogger()
    ) throws -> TokenKeys {
        try TokenKeys(file: try folder.write("keys", lines.joined(separator: "\n")), logger: log.logger)
    }

    /// Everything that the registry's tables hold, as one text.
    static func dump(_ pool: PostgresPool) async throws -> String {
        try await pool.query("SELECT schema_to_xml('registry', true, false, '')::text").single(String.self)
    }

    /// How many tokens are stored under each key.
    static func stored(_ pool: PostgresPool) async throws -> [String: Int] {
        var numbers: [String: Int] = [:]
        for row in try await pool.query(TokenRewriteStore.counting((SweepStore.first, SweepStore.last))) {
            numbers[try row.decode(String.self, at: 0)] = try row.decode(Int.self, at: 1)
        }
        return numbers
    }

    /// Walks to the end of the table.
    ///
    /// - Returns: how many tokens were rewritten.
    @discardableResult
    static func walk(_ store: TokenRewriteStore) async throws -> Int {
        var count = 0
        while true {
            switch try await store.advance() {
            case .more(let rewritten, _): count += rewritten
            case .finished(let rewritten, _): return count + rewritten
            case .resting, .elsewhere: return count
            }
        }
    }
}
