import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

@Suite(.timeLimit(.minutes(2))) struct OutcomeHandlerTests {
    func outcomes(_ outcomes: [Outcome]) -> Outcomes {
        Outcomes(
            trace: Trace(id: UUID(), correlation: "e", causation: "p"), app: AppID(rawValue: "test")!, origin: .apns,
            environment: .production, lane: .interactive, outcomes: outcomes)
    }

    func delivery(_ message: Outcomes) throws -> Delivery<Outcomes> {
        let inbound = Inbound(
            queue: .rulesOutcomes, exchange: "outcomes", routingKey: "apns.accepted", body: try message.wireBody())
        return Delivery(inbound: inbound, message: message)
    }

    @Test func `outcomes whose origin differs from their routing key are refused`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = OutcomeHandler(store: OutcomeStore(pool: pool))
            let body = try outcomes([]).wireBody()
            for (key, isTaken) in [("apns.misconfigured", true), ("fcm.misconfigured", false)] {
                let inbound = Inbound(queue: .rulesOutcomes, exchange: "outcomes", routingKey: key, body: body)
                do throws(WireError) {
                    _ = try handler.decode(inbound)
                    #expect(isTaken)
                } catch {
                    #expect(!isTaken && error.code == "wrong-routing-key")
                }
            }
        }
    }

    @Test func `a repeated outcome is stored once`() async throws {
        try await RulesDatabase.withPool { pool in
            let handler = OutcomeHandler(store: OutcomeStore(pool: pool))
            let (notification, device) = (UUID(), UUID())
            let at = Timestamp(milliseconds: 5_000)
            try await pool.execute(
                """
                INSERT INTO rules.decision (notification, event, rule, user_id, decided_at)
                VALUES (\(notification), \(UUID()), 'only', '1', \(at.date))
                """)
            func outcome(_ answer: Outcome.Answer, device: UUID? = device) -> Outcome {
                Outcome(notification: notification, device: device, answer: answer, at: at, registeredAt: nil)
            }
            let first = try delivery(
                outcomes([
                    outcome(.throttled(reason: "TooManyRequests")), outcome(.accepted(id: "x")),
                    outcome(.skipped(reason: "no-device"), device: nil),
                    outcome(.rejected(reason: "a\0'b", suspectToken: true)),
                    // No decision exists for this one.
                    Outcome(notification: UUID(), device: device, answer: .expired, at: at, registeredAt: nil),
                ]))
            let empty = try delivery(outcomes([]))
            #expect(try handler.decode(first.inbound) == first.message)
            #expect(try await handler.handle([first, empty]).map(\.disposition) == [.done, .done])
            #expect(try await handler.handle([first, first]).map(\.disposition) == [.done, .done])
            #expect(try await handler.handle([empty]).map(\.disposition) == [.done])
            let found: [String] = try await pool.query(
                "SELECT array_agg(disposition || ':' || coalesce(reason, '-')) FROM rules.outcome"
            ).single()
            #expect(
                found.sorted() == ["accepted:-", "rejected:a'b", "skipped:no-device", "throttled:TooManyRequests"])
        }
    }

    @Test func `an outcome of a sender whose clock is ahead has the time of its arrival`() async throws {
        try await RulesDatabase.withPool { pool in
            let (late, early) = (UUID(), UUID())
            let arrival = Timestamp(milliseconds: 1_767_225_600_000)
            try await pool.execute(
                """
                INSERT INTO rules.decision (notification, event, rule, user_id, decided_at)
                SELECT unnest(\([late, early])), \(UUID()), 'only', '1', \(arrival.date)
                """)
            func outcome(_ notification: UUID, at: Timestamp) -> Outcome {
                Outcome(notification: notification, device: UUID(), answer: .expired, at: at, registeredAt: nil)
            }
            let message = outcomes([
                outcome(late, at: arrival + .seconds(3600)), outcome(early, at: arrival - .seconds(5)),
            ])
            try await OutcomeStore(pool: pool).keep([message], now: arrival)
            let times: [Date] = try await pool.query("SELECT array_agg(at ORDER BY at) FROM rules.outcome").single()
            #expect(times.map(Timestamp.init) == [arrival - .seconds(5), arrival])
        }
    }

    @Test func `an unreachable database is an outage`() async throws {
        let configuration = try PostgresConfiguration(
            url: "postgresql://nobody@127.0.0.1:1/none", checkoutTimeout: .milliseconds(100), applicationName: "tests")
        try await TestDatabase.withPool(configuration) { pool in
            let handler = OutcomeHandler(store: OutcomeStore(pool: pool))
            let message = outcomes([
                Outcome(notification: UUID(), device: nil, answer: .expired, at: .now, registeredAt: nil)
            ])
            await #expect(throws: Outage.self) { try await handler.handle([try delivery(message)]) }
        }
    }

    @Test func `the service's database role has exactly the rights that the service needs`() async throws {
        try await RulesDatabase.withPool { pool in
            let rights: [String] = try await pool.query(
                """
                SELECT array_agg(table_name || ' ' || privilege_type)
                FROM information_schema.role_table_grants WHERE grantee = 'heliograph_rules' AND table_schema = 'rules'
                """
            ).single()
            let tables = ["decision", "event", "outcome", "receipt", "census_report", "recording"].flatMap {
                ["\($0) DELETE", "\($0) INSERT", "\($0) SELECT"]
            }
            let kept = [
                "badge", "held", "inbox", "person", "presence", "member", "circle", "done", "done_by", "told", "digest",
                "digest_item", "report", "erasure", "tally", "tally_hour", "crowd", "preference_change", "revocation",
                "census_count", "census_gap", "census_interval", "census_lease", "shown_copy", "clear_command",
                "inbox_removal", "event_item", "replacement", "channel",
            ].flatMap { table in
                ["DELETE", "INSERT", "SELECT", "UPDATE"].map { "\(table) \($0)" }
            }
            let stopped = ["INSERT", "SELECT"].map { "stopped_variant \($0)" }
            let said = ["DELETE", "INSERT", "SELECT"].map { "saying \($0)" }
            #expect(
                rights.sorted()
                    == (tables + kept + stopped + said + ["migration SELECT", "delivery SELECT", "api_key SELECT"])
                    .sorted())
        }
    }
}
