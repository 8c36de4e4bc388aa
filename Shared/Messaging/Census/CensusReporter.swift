package import AMQP
internal import FoundationEssentials
package import Logging
internal import PushProtocol
internal import ServiceLifecycle

/// Publishes a ``CensusReport`` at an interval, and a final one at graceful shutdown.
///
/// Place it after the bus and before the stages in a `ServiceGroup`, so that the final report covers drained batches.
package struct CensusReporter: Service {
    package static let interval = Duration.seconds(3)
    /// The time limit for the final report.
    private static let finalLimit = Duration.seconds(3)

    private let service: String
    private let process = UUID()
    private let log: CensusLog
    private let bus: any MessageBus
    /// When the oldest unsettled delivery arrived.
    private let oldest: @Sendable () -> ContinuousClock.Instant?
    private let pace: Duration
    private let logger: Logger

    package init(
        service: String, log: CensusLog, bus: any MessageBus,
        oldest: @escaping @Sendable () -> ContinuousClock.Instant?, pace: Duration = interval, logger: Logger
    ) {
        self.service = service
        self.log = log
        self.bus = bus
        self.oldest = oldest
        self.pace = pace
        self.logger = logger
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var isTroubled = false
            while (try? await Task.sleep(for: pace)) != nil {
                let answers = await report()
                if let problem = answers.first(where: { $0 != .confirmed }) {
                    if !isTroubled {
                        logger.warning(
                            "A census report is not accepted; apply the topology or check permissions",
                            metadata: [LogKey.reply: "\(problem)"])
                    }
                    isTroubled = true
                } else {
                    isTroubled = false
                }
            }
        }
        _ = await Timeout.result(of: { await report(isFinal: true) }, within: Self.finalLimit)
    }

    /// Publishes the present entries, in one report or more. Keeps those that the broker does not confirm.
    ///
    /// - Returns: The broker's answers; none if the bus is closed or the task is cancelled.
    @discardableResult
    package func report(isFinal: Bool = false) async -> [AMQPConfirmation] {
        var taken: [CensusLog.Entries] = []
        var messages: [AMQPMessage] = []
        repeat {
            // The time first, then the oldest delivery, then the entries: a message that is settled meanwhile is in
            // this report's entries, and one that arrives meanwhile is not claimed.
            let at = Timestamp.now
            let age = oldest().map { max(0, Int(clamping: $0.duration(to: .now).wholeMilliseconds)) }
            let entries = log.take()
            taken.append(entries)
            let report = CensusReport(
                trace: Trace(id: UUID(), correlation: "census", causation: Hexadecimal.text(of: process)),
                service: service, process: process, at: at, oldest: age, isFinal: isFinal, settled: entries.settled,
                retried: entries.retried, deadLettered: entries.deadLettered)
            // A report has a fixed form and a limited size, so that it is always encodable.
            guard let outbound = try? Outbound(report, to: .census, routingKey: service) else { continue }
            messages.append(outbound.message(from: service))
        } while !log.isEmpty
        let answers = (try? await bus.publish(messages)) ?? []
        for (index, entries) in taken.enumerated() {
            if index >= answers.count || answers[index] != .confirmed { log.restore(entries) }
        }
        return answers
    }
}
