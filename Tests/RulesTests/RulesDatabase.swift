import Foundation
import Messaging
import Postgres
import PushProtocol
import TestSupport

@testable import RuleEngine
@testable import Rules

/// A real database with the schema of the rules service.
enum RulesDatabase {
    static func withPool<R: Sendable>(
        statementTimeout: Duration = .seconds(60), _ body: (PostgresPool) async throws -> R
    ) async throws -> R {
        try await TestSchema.rules.withPool(statementTimeout: statementTimeout, body)
    }

    /// Also opens the second, small pool of the operator routes.
    ///
    /// - Parameter patience: the connection checkout timeout of an operator's request.
    static func withPools<R: Sendable>(
        patience: Duration, _ body: (PostgresPool, PostgresPool) async throws -> R
    ) async throws -> R {
        try await TestSchema.rules.withDatabase { configuration in
            var small = configuration
            (small.poolSize, small.checkoutTimeout) = (RulesApp.operatorConnections, patience)
            return try await TestDatabase.withPool(configuration) { pool in
                try await TestDatabase.withPool(small) { operators in try await body(pool, operators) }
            }
        }
    }

    /// The number of rows in a table.
    static func count(_ table: SQL, _ pool: PostgresPool) async throws -> Int {
        try await pool.query("SELECT count(*) FROM \(table)").single()
    }

    /// The number of stored events, decisions and outcomes.
    static func counts(_ pool: PostgresPool) async throws -> [Int] {
        [
            try await count("rules.event", pool), try await count("rules.decision", pool),
            try await count("rules.outcome", pool),
        ]
    }
}

/// A delivery of `body` as upstream publishes it.
func delivered(
    _ body: String, routingKey: String = "test.thing.happened", contentType: String? = "application/cloudevents+json",
    headers: [String: String] = [:], redelivered: Bool = false
) -> Inbound {
    Inbound(
        queue: .rulesEvents, exchange: "events", routingKey: routingKey, contentType: contentType, headers: headers,
        body: Array(body.utf8), redelivered: redelivered, firstSeen: Timestamp(milliseconds: 1_000))
}

/// A structured CloudEvent.
func cloudEvent(
    id: String = "e-1", type: String = "thing.happened", data: String = #"{"name":"Pat","users":[1,2]}"#,
    extra: String = ""
) -> String {
    #"{"specversion":"1.0","id":"\#(id)","source":"/up","type":"\#(type)","data":\#(data)\#(extra)}"#
}

/// The registry's outcome for each notification of a message.
func answers(to outbound: [Outbound]) throws -> [Outcomes] {
    try outbound.map { message in
        let notification = try Notification.decode(wireBody: message.body)
        return Outcomes(
            trace: notification.trace.next(id: UUID()), app: notification.app, origin: .registry, environment: nil,
            lane: notification.lane,
            outcomes: notification.recipients.map {
                Outcome(
                    notification: $0.notification, device: nil, answer: .skipped(reason: "no-device"),
                    at: Timestamp(milliseconds: 2_000), registeredAt: nil)
            })
    }
}

// Most tests do not depend on the current time.

extension OutcomeStore {
    func keep(_ messages: [Outcomes]) async throws { try await keep(messages, now: .now) }
}

extension ErasureStore {
    @discardableResult func erase(_ person: PersonKey, at moment: Timestamp) async throws -> Bool {
        try await erase(person, at: moment, now: .now)
    }
}

extension EventHandler {
    init(currentRules: CurrentRules, store: DecisionStore) {
        self.init(currentRules: currentRules, store: store, now: { .now })
    }
}

extension OutcomeHandler {
    init(store: OutcomeStore) { self.init(store: store, now: { .now }) }
}

extension ErasureHandler {
    init(store: ErasureStore) { self.init(store: store, now: { .now }) }
}
