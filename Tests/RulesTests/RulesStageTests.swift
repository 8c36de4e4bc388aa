import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceLifecycle
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// The two handlers in the real runtime, on a real database.
@Suite(.timeLimit(.minutes(2))) struct RulesStageTests {
    static let notifications = WorkQueue.registryNotifications(.interactive).name

    /// Runs both stages while `body` runs.
    func withStages(_ body: (InMemoryBus, PostgresPool) async throws -> Void) async throws {
        let ruleSets = RuleSets([try parse(ruleFile(say: #"body: "{{name}}""#))])
        try await RulesDatabase.withPool { pool in
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            let logger = Logger(label: "tests.rules") { _ in SwiftLogNoOpLogHandler() }
            let events = Stage(
                service: "rules", queues: [.rulesEvents], bus: bus,
                handler: EventHandler(currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool)),
                logger: logger)
            let outcomes = Stage(
                service: "rules", queues: [.rulesOutcomes], bus: bus,
                handler: OutcomeHandler(store: OutcomeStore(pool: pool)), logger: logger)
            let running = Task {
                try await withThrowingDiscardingTaskGroup { group in
                    group.addTask { try await events.run() }
                    group.addTask { try await outcomes.run() }
                }
            }
            let result: Result<Void, any Error>
            do { result = .success(try await body(bus, pool)) } catch { result = .failure(error) }
            running.cancel()
            bus.close()
            _ = await running.result
            try result.get()
        }
    }

    func publish(_ body: String, on bus: InMemoryBus, routingKey: String = "test.thing.happened") {
        let confirmation = bus.send(
            to: "events", routingKey, Array(body.utf8),
            properties: AMQPProperties(contentType: "application/cloudevents+json"))
        #expect(confirmation == .confirmed)
    }

    func settled(_ bus: InMemoryBus) -> Bool {
        [WorkQueue.rulesEvents, .rulesOutcomes].allSatisfy {
            bus.isSettled($0.name)
        }
    }

    @Test func `an event whose statement always times out is dead-lettered, and other events go on`()
        async throws
    {
        let ruleSets = RuleSets([try parse(ruleFile(say: #"body: "{{name}}""#))])
        try await RulesDatabase.withPool(statementTimeout: .milliseconds(700)) { pool in
            try await pool.execute(
                """
                CREATE FUNCTION rules.wait() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN IF NEW.user_id = '666' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$
                """)
            try await pool.execute(
                "CREATE TRIGGER wait BEFORE INSERT ON rules.decision FOR EACH ROW EXECUTE FUNCTION rules.wait()")
            let bus = InMemoryBus(apps: [AppID(rawValue: "test")!])
            var policy = EventHandler.policy(isOfOneApp: true, connections: 4)
            policy.maximumAttempts = 2
            let stage = Stage(
                service: "rules", queues: [.rulesEvents], policy: policy, bus: bus,
                handler: EventHandler(currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool)),
                logger: Logger(label: "tests.rules") { _ in SwiftLogNoOpLogHandler() })
            let running = Task { try await stage.run() }
            let result: Result<Void, any Error>
            do {
                for number in 1...30 {
                    let user = number == 11 ? 666 : number
                    publish(
                        cloudEvent(id: "e-\(number)", data: #"{"name":"Pat","users":[\#(user)]}"#), on: bus)
                }
                try await eventually("the other events are notified", within: .seconds(60)) {
                    bus.messages(in: Self.notifications).count == 29
                }
                let dead = try await eventuallySome("the dead letter", within: .seconds(60)) {
                    bus.expireRetries()
                    return bus.messages(in: WorkQueue.rulesEvents.deadName).first
                }
                #expect(dead.properties.headers[HeaderName.reason]?.text == "handler-failed")
                #expect(dead.properties.headers[HeaderName.detail]?.text?.contains("57014") == true)
                #expect(dead.properties.headers[HeaderName.attempt]?.int == 2)
                #expect(stage.status.first?.state == .consuming)
                result = .success(())
            } catch { result = .failure(error) }
            running.cancel()
            bus.close()
            _ = await running.result
            try result.get()
        }
    }

    @Test func `events with many recipients make smaller batches`() throws {
        let handler = EventHandler(
            currentRules: CurrentRules(RuleSets([try parse(ruleFile())])),
            store: DecisionStore(
                pool: PostgresPool(
                    configuration: try PostgresConfiguration(
                        url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "tests"),
                    logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })))
        func weight(_ recipients: Int) throws -> Int {
            let users = (0..<recipients).map(String.init).joined(separator: ",")
            let event = try handler.decode(delivered(cloudEvent(data: #"{"name":"Pat","users":[\#(users)]}"#)))
            return handler.weight(of: event)
        }
        #expect(try [weight(0), weight(1), weight(1000)] == [1, 1, 1000])
        #expect(EventHandler.policy(isOfOneApp: true, connections: 4).batchWeight <= 10 * 1000)
    }

    @Test func `an event's notifications are published before its ack, and its outcomes are stored`() async throws {
        try await withStages { bus, pool in
            bus.holdConfirms(true)
            publish(cloudEvent(), on: bus)
            let body = try await eventuallySome("the notification") {
                bus.messages(in: RulesStageTests.notifications).first?.body
            }
            #expect(bus.unsettled(in: WorkQueue.rulesEvents.name) == 1)
            bus.holdConfirms(false)
            try await eventually("the event is settled") { settled(bus) }

            let notification = try Notification.decode(wireBody: body)
            let outcomes = Outcomes(
                trace: notification.trace.next(id: UUID()), app: notification.app, origin: .registry, environment: nil,
                lane: .interactive,
                outcomes: notification.recipients.map {
                    Outcome(
                        notification: $0.notification, device: nil, answer: .skipped(reason: "no-device"), at: .now,
                        registeredAt: nil)
                })
            bus.send(to: "outcomes", "registry.skipped", try outcomes.wireBody())
            try await eventually("the outcomes are kept") { try await RulesDatabase.counts(pool) == [1, 2, 2] }

            publish(cloudEvent(), on: bus)
            try await eventually("the copy is settled") { settled(bus) }
            #expect(bus.messages(in: RulesStageTests.notifications).count == 1)
        }
    }

    @Test func `after a failure between commit and confirm, the same ids are published again`() async throws {
        try await withStages { bus, pool in
            bus.holdConfirms(true)
            publish(cloudEvent(), on: bus)
            try await eventually("the first attempt") { bus.messages(in: RulesStageTests.notifications).count == 1 }
            bus.loseConnection()
            bus.holdConfirms(false)
            try await eventually("the second attempt") {
                bus.messages(in: RulesStageTests.notifications).count == 2 && settled(bus)
            }
            let bodies = bus.messages(in: RulesStageTests.notifications).map(\.body)
            #expect(
                try Notification.decode(wireBody: bodies[0]).recipients
                    == Notification.decode(wireBody: bodies[1]).recipients)
            #expect(try await RulesDatabase.counts(pool) == [1, 2, 0])
        }
    }

    @Test func `invalid events are dead-lettered with a reason, and other events go on`() async throws {
        try await withStages { bus, _ in
            publish("not json", on: bus)
            publish(String(repeating: "[", count: 5_000), on: bus)
            publish(cloudEvent().replacing("\"1.0\"", with: "\"0.3\""), on: bus)
            publish(cloudEvent(id: "unrenderable", data: #"{"users":[1]}"#), on: bus)
            publish(cloudEvent(id: "unknown", type: "thing.else"), on: bus)
            publish(cloudEvent(id: "good"), on: bus)
            try await eventually("all are settled") { settled(bus) }
            let reasons = bus.messages(in: WorkQueue.rulesEvents.deadName).map { message -> String in
                guard case .text(let reason) = message.properties.headers[HeaderName.reason] else { return "none" }
                return reason
            }
            #expect(reasons.sorted() == ["invalid-field", "missing-field", "not-json", "too-deep"])
            #expect(bus.messages(in: RulesStageTests.notifications).map(\.properties.correlationID) == ["good"])
        }
    }
}
