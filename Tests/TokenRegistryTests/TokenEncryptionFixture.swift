import Foundation
import Postgres
import PushProtocol
import TestSupport
import TokenEncryption

@testable import RegistryStore

/// Key files, and the stored form of tokens.
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

    /// All contents of the registry's tables as one text.
    static func dump(_ pool: PostgresPool) async throws -> String {
        try await pool.query("SELECT schema_to_xml('registry', true, false, '')::text").single(String.self)
    }

    /// The number of stored tokens by key.
    static func stored(_ pool: PostgresPool) async throws -> [String: Int] {
        var numbers: [String: Int] = [:]
        for row in try await pool.query(TokenRewriteStore.counting((SweepStore.first, SweepStore.last))) {
            numbers[try row.decode(String.self, at: 0)] = try row.decode(Int.self, at: 1)
        }
        return numbers
    }

    /// Walks to the end of the table.
    ///
    /// - Returns: the number of rewritten tokens.
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
