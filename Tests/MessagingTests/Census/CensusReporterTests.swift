import AMQP
import Foundation
import Logging
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import Messaging

/// Messages are notification ids. The script decides about each.
private struct NotificationHandler: StageHandler {
    let verdict: @Sendable (UUID) throws -> Verdict

    func decode(_ inbound: Inbound) throws(WireError) -> UUID {
        guard let id = UUID(uuidString: String(decoding: inbound.body, as: UTF8.self)) else { throw .notJSON("no id") }
        return id
    }

    func collectNotifications(of message: UUID, isDone: Bool, into notifications: inout [UUID]) {
        notifications.append(message)
    }

    func handle(_ batch: [Delivery<UUID>]) async throws -> [Verdict] { try batch.map { try verdict($0.message) } }
}

/// The reports have each settled notification once.
@Suite(.timeLimit(.minutes(1))) struct CensusReporterTests {
    private let bus = InMemoryBus(apps: [demo])
    private let log = CensusLog()
    private static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func reporter(oldest: ContinuousClock.Instant? = nil) -> CensusReporter {
        CensusReporter(
            service: "rules", log: log, bus: bus, oldest: { oldest }, pace: .seconds(600), logger: Self.silent)
    }

    private func reports() throws -> [CensusReport] {
        try bus.messages(in: WorkQueue.rulesCensus.name).map { try CensusReport.decode(wireBody: $0.body) }
    }

    private static func keys(_ keys: CensusKeys) -> Set<UInt64> {
        var found: Set<UInt64> = []
        keys.forEachKey { found.insert($0) }
        return found
    }

    private func handle(_ ids: [UUID], _ verdict: @escaping @Sendable (UUID) throws -> Verdict) async throws {
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(), bus: bus,
            handler: NotificationHandler(verdict: verdict),
            census: log, logger: Self.silent)
        try await withRunning(stage) { _ in
            for id in ids { bus.event(id.uuidString) }
            try await eventually { bus.isSettled(queue.name) }
        }
    }

    @Test func `a report names settled, retried and dead-lettered notifications, and only once`() async throws {
        let ids = (0..<40).map { _ in UUID() }
        let (retried, dead, idle) = (ids[3], ids[5], ids[7])
        let before = Timestamp.now
        try await handle(ids) { id in
            if id == retried { return Verdict(.retry(after: .seconds(30), .test)) }
            if id == dead { return Verdict(.deadLetter(.test)) }
            return id == idle ? .done : .done([.notification(id.uuidString)])
        }
        await reporter().report()
        let report = try #require(try reports().first)
        #expect(report.service == "rules" && report.oldest == nil && !report.isFinal)
        #expect(
            Self.keys(report.settled)
                == Set(ids.filter { $0 != retried && $0 != dead }.map(CensusKeys.key(of:))))
        #expect(Self.keys(report.deadLettered) == [CensusKeys.key(of: dead)])
        var returns: [UInt64: Timestamp] = [:]
        report.retried.forEachKeyAndTime { returns[$0] = $1 }
        let until = try #require(returns[CensusKeys.key(of: retried)])
        #expect(returns.count == 1 && until >= before + .seconds(30) && until <= .now + .seconds(30))
        await reporter().report()
        let next = try #require(try reports().last)
        #expect(next.settled.isEmpty && next.retried.isEmpty && next.deadLettered.isEmpty)
    }

    @Test func `a handler that fails reports its message as retried`() async throws {
        let id = UUID()
        try await handle([id]) { _ in throw CancellationError() }
        await reporter().report()
        let report = try #require(try reports().first)
        #expect(!report.retried.isEmpty && report.settled.isEmpty)
    }

    @Test func `entries stay until a report with them is confirmed`() async throws {
        let id = UUID()
        try await handle([id]) { _ in .done }
        bus.answer(publishesTo: .census, with: [.nacked])
        await reporter().report()
        #expect(try reports().isEmpty)
        await reporter().report()
        #expect(try reports().map { Self.keys($0.settled) } == [[CensusKeys.key(of: id)]])
    }

    @Test func `more keys than a report may have are divided`() async throws {
        log.settled((0..<30_000).map { _ in UUID() })
        await reporter().report()
        let sizes = try reports().map { $0.settled.bytes.count / 8 }
        #expect(sizes == [12_000, 12_000, 6_000])
    }

    @Test func `the oldest delivery has its age, and shutdown publishes a final report`() async throws {
        let reporter = reporter(oldest: .now - .seconds(7))
        try await withRunning(reporter) { _ in await reporter.report() }
        let found = try reports()
        #expect(found.map(\.isFinal) == [false, true])
        #expect((found.first?.oldest).map { 7000..<10_000 ~= $0 } == true)
        #expect(Set(found.map(\.process)).count == 1)
    }
}
