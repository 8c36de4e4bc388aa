import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

extension WorkerIsolationTests {
    func clearShownCopies() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            try await fixture.addShownCopy("bad", user: "")
            try await fixture.addShownCopy("good")
            try await fixture.shownCopyClearer.clearDue()
            #expect(try fixture.published() == [Self.good])
            #expect(try await fixture.dead(.clearCommand) == ["unreadable"])
        }
    }
}

extension WorkerIsolationTests.TwoAppFixture {
    var shownCopyClearer: ShownCopyClearer {
        ShownCopyClearer(
            service: "rules", store: ClearCommandStore(pool: pool, logger: .silent), bus: bus, now: { clock.now },
            logger: .silent)
    }

    /// Adds a copy on phones, and a due command.
    func addShownCopy(_ app: String, user: String = "1") async throws {
        let now = clock.now.date
        try await pool.execute(
            """
            INSERT INTO rules.shown_copy
                (notification, app, user_id, identifier, decided_at, noted_at, is_accepted)
            VALUES (gen_random_uuid(), \(app), \(user), 'x', \(now), \(now), true)
            """)
        try await pool.execute(
            """
            INSERT INTO rules.clear_command (app, user_id, due_at, noted_at)
            VALUES (\(app), \(user), \(now), \(now))
            """)
    }
}

extension InboxFeedStore.Entry {
    /// The app of a new item.
    var app: AppID? {
        switch change {
        case .new(let item): item.rendered.app
        case .removed: nil
        }
    }
}
