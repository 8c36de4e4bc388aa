import FoundationEssentials
import Postgres
import PushProtocol

/// Lists and ends the halts of FIDs by app version.
struct FIDHaltStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    struct Halt: Hashable, Sendable {
        var app: String
        /// Empty for registrations without a version.
        var version: String
        var haltedAt: Date
        var until: Date
        /// The number of users whose FIDs were refused within a day.
        var suspected: Int

        /// `family-portal  5.0  12 people  since …  until …`
        var line: String {
            let words = [app, version.isEmpty ? "no version" : version, "\(suspected) people"]
            let times = ["since \(RFC3339.string(from: haltedAt))", "until \(RFC3339.string(from: until))"]
            return (words + times).joined(separator: "  ")
        }
    }

    /// The current halts, the latest first.
    func list() async throws(PostgresError) -> [Halt] {
        let rows = try await database.query(
            """
            SELECT app, app_version, halted_at, until, suspected FROM registry.fid_halt
            WHERE until > statement_timestamp() ORDER BY halted_at DESC, app, app_version
            """)
        var halts: [Halt] = []
        for row in rows {
            halts.append(
                Halt(
                    app: try row.decode(at: 0), version: try row.decode(at: 1), haltedAt: try row.decode(at: 2),
                    until: try row.decode(at: 3), suspected: Int(try row.decode(Int64.self, at: 4))))
        }
        return halts
    }

    /// Ends a halt now. Returns whether it existed.
    func end(app: AppID, version: String) async throws(PostgresError) -> Bool {
        try await database.execute(
            """
            UPDATE registry.fid_halt SET until = statement_timestamp()
            WHERE app = \(app.rawValue) AND app_version = \(version) AND until > statement_timestamp()
            """) > 0
    }
}
