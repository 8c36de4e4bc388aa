import Foundation
import Postgres
import PushProtocol
import Testing

@testable import RuleEngine
@testable import Rules

/// The time between two states of a live surface, on a real database with a slow worker.
@Suite(.timeLimit(.minutes(3))) struct PaceTests {
    private static func due(_ fixture: SurfaceChannelStoreTests.Fixture) async throws -> [Date] {
        try await fixture.pool.query("SELECT DISTINCT due_at FROM rules.held WHERE leaving IS NULL ORDER BY due_at")
            .map { try $0.decode(Date.self, at: 0) }
    }

    private static func minutes(_ notifications: [PushProtocol.Notification]) -> [Int64?] {
        notifications.map { $0.content.apns?.payload?[path: "aps.content-state.minutes"]?.int }
    }

    @Test func `a state that replaces a due one is sent in its place`() async throws {
        try await SurfaceChannelStoreTests.with("") { fixture in
            _ = try await fixture.happen("order.accepted")
            // The end by time waits, too.
            let before = try await Self.due(fixture)
            func paced() async throws -> [Date] { try await Self.due(fixture).filter { !before.contains($0) } }
            fixture.clock.advance(.seconds(3))
            _ = try await fixture.happen("courier.moved", minutes: 8)
            let first = SurfaceChannelStoreTests.start + .seconds(10)
            #expect(try await paced() == [first.date])
            // The worker comes late: each state finds one that is due.
            for (pause, minutes) in [(8, 7), (2, 6), (9, 5)] {
                fixture.clock.advance(.seconds(pause))
                _ = try await fixture.happen("courier.moved", minutes: minutes)
                #expect(try await paced() == [first.date])
            }
            try await fixture.worker.releaseDue()
            #expect(Self.minutes(try fixture.released) == [5])
            // The next one waits for the next step.
            fixture.clock.advance(.seconds(1))
            _ = try await fixture.happen("courier.moved", minutes: 4)
            try await fixture.worker.releaseDue()
            #expect(try fixture.released.count == 1)
            #expect(try await paced() == [(SurfaceChannelStoreTests.start + .seconds(30)).date])
            fixture.clock.advance(.seconds(10))
            try await fixture.worker.releaseDue()
            #expect(Self.minutes(try fixture.released) == [5, 4])
        }
    }
}
