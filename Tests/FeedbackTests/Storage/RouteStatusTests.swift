import Foundation
import Postgres
import Testing
import TestSupport

@testable import FeedbackStore

/// The routes that `pushctl status` shows.
@Suite(.timeLimit(.minutes(2))) struct RouteStatusTests {
    @Test func `a route has its answers, a sender's suspicion and its guard`() async throws {
        try await TestSchema.feedback.withPool { pool in
            let store = RouteStatusStore(pool)
            #expect(try await store.routes() == [])
            try await pool.execute(
                """
                INSERT INTO feedback.pulse
                    (app, provider, environment, minute, sender, answered, accepted_at, storm_since, storm_until)
                VALUES
                    ('a', 'apns', 'production', now() - interval '1 minute', gen_random_uuid(), 5, now(), NULL, NULL),
                    ('a', 'apns', 'production', now() - interval '2 minutes', gen_random_uuid(), 7, NULL,
                        now() - interval '3 minutes', now()),
                    ('a', 'apns', 'production', now() - interval '1 hour', gen_random_uuid(), 100, NULL, NULL, NULL),
                    ('a', 'fcm', 'production', now() - interval '1 hour', gen_random_uuid(), 9, NULL,
                        now() - interval '1 hour', now() - interval '50 minutes')
                """)
            try await pool.execute(
                """
                INSERT INTO feedback.guard (app, provider, environment, tripped_at, held_until)
                VALUES ('a', 'fcm', 'production', now(), now() + interval '1 hour')
                """)
            let routes = try await store.routes()
            #expect(routes.map(\.provider) == ["apns", "fcm"] && routes.map(\.answered) == [12, 0])
            #expect(routes[0].suspectedSince != nil && routes[0].guardTrippedSince == nil)
            #expect(routes[0].acceptedAt != nil)
            #expect(routes[1].suspectedSince == nil && routes[1].guardTrippedSince != nil)
            #expect(routes[1].acceptedAt == nil)
        }
    }
}
