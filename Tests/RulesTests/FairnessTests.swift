import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

@testable import Rules

/// One app floods the queue while another app publishes an event, on a real broker and database.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4))) struct FairnessTests {
    /// The maximum latency of a quiet app's event in rules while another app floods.
    private static let bound = Duration.seconds(2)
    private static let flood = 20_000
    private static let (loud, quiet) = (AppID(rawValue: "test")!, AppID(rawValue: "quiet")!)

    @Test func `an event of one app leaves within two seconds while 20,000 of another wait`() async throws {
        let apps = [Self.loud, Self.quiet]
        let text = ruleFile(say: #"body: "{{name}}""#)
        let quietText = text.replacing("app: test", with: "app: \(Self.quiet)")
        let ruleSets = RuleSets([try parse(text), try RuleFile.parse(quietText, file: "\(Self.quiet).yaml")])
        try await RulesDatabase.withPool { pool in
            try await TestBroker.withVirtualHost { url in
                let configuration = try AMQPConfiguration(url: url, connectionName: "fairness tests")
                let logger = Logger(label: "tests.rules") { _ in SwiftLogNoOpLogHandler() }
                try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                    try await Topology(apps: apps).apply(using: administrator)
                    let publisher = AMQPPublisher(configuration: configuration, logger: logger)
                    let consumer = AMQPConsumer(configuration: configuration, logger: logger)
                    let stage = Stage(
                        service: "rules", queues: WorkQueue.events(of: apps),
                        policy: { $0.app == nil ? StagePolicy() : .perApp(connections: 4) },
                        bus: AMQPBus(publisher: publisher, consumer: consumer),
                        handler: EventHandler(currentRules: CurrentRules(ruleSets), store: DecisionStore(pool: pool)),
                        logger: logger)
                    try await withServices([publisher, consumer]) {
                        try await Self.publishFlood(with: publisher)
                        try await withServices([stage]) {
                            try await Self.measure(publisher, administrator)
                        }
                    }
                }
            }
        }
    }

    private static func publishFlood(with publisher: AMQPPublisher) async throws {
        for start in stride(from: 0, to: flood, by: 1000) {
            let answers = try await publisher.publish((start..<start + 1000).map { event(loud, "\($0)") })
            #expect(answers.allSatisfy { $0 == .confirmed })
        }
    }

    private static func measure(_ publisher: AMQPPublisher, _ administrator: AMQPAdministrator) async throws {
        let backlog = WorkQueue.rulesAppEvents(loud).name
        func left() async throws -> Int { try await administrator.queueStatus(backlog)?.messages ?? 0 }
        try await eventually("the flood is being handled") { try await left() < flood - 400 }
        var slowest = Duration.zero
        for round in 0..<5 {
            let start = ContinuousClock.now
            #expect(try await publisher.publish([event(quiet, "q-\(round)")]) == [.confirmed])
            try await eventually("the quiet app's notification", within: .seconds(60)) {
                try await administrator.get(WorkQueue.registryAppNotifications(.interactive, quiet).name) != nil
            }
            slowest = max(slowest, start.duration(to: .now))
        }
        let waiting = try await left()
        print("FairnessTests: the slowest of five events took \(slowest), with \(waiting) events of the flood left")
        #expect(slowest < bound)
        #expect(waiting > flood / 2)
    }

    private static func event(_ app: AppID, _ id: String) -> AMQPMessage {
        AMQPMessage(
            exchange: ExchangeName.events.name, routingKey: "\(app).thing.happened",
            properties: AMQPProperties(contentType: "application/cloudevents+json", messageID: id),
            body: Array(cloudEvent(id: id).utf8))
    }
}
