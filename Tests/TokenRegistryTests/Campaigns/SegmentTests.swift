import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Segments: campaigns whose users go to rules, and hold-outs.
@Suite(.timeLimit(.minutes(3))) struct SegmentTests {
    typealias A = AudienceFixture
    typealias Fixture = StoreFixture

    static let event = DomainEvent(
        app: Fixture.app, id: "offer-1", source: "/food", type: "offer.published",
        time: Date(timeIntervalSince1970: 1_767_225_600), data: ["text": "Two for one"])

    private static func fill(_ pool: PostgresPool, _ count: Int) async throws {
        try await pool.execute(
            """
            INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
                state_changed_at)
            SELECT gen_random_uuid(), \(Fixture.app.rawValue), 'user-' || n, 'apns', 'production', 'token-' || n,
                now(), now()
            FROM generate_series(1, \(count)) AS n
            """)
    }

    /// The pages of all steps of a campaign, and the number of its pushes and outcomes.
    private static func pages(
        _ notification: PushProtocol.Notification, _ pool: PostgresPool, size: Int
    ) async throws -> (pages: [SegmentPage], messages: Int, [CampaignSteps.Verdict]) {
        let store = CampaignStore(pool)
        let steps = CampaignSteps(store: store)
        var pages: [SegmentPage] = []
        var messages = 0
        var ends: [CampaignSteps.Verdict] = []
        for start in try await store.open(notification, to: notification.audience!) {
            var cursor = start
            while true {
                let verdict = try await steps.next(cursor, redelivered: true, size: size)
                guard case .step(let step) = verdict else {
                    ends.append(verdict)
                    break
                }
                for message in step.pushes(from: "token-registry") {
                    messages += 1
                    let event = try CloudEvents.decode(
                        routingKey: message.routingKey, contentType: "application/json", headers: [:],
                        body: message.body)
                    #expect(message.exchange == "events" && event.app == Fixture.app)
                    pages.append(try SegmentPage(event))
                }
                cursor = try CampaignCursor.decode(wireBody: step.next(from: "token-registry").body)
            }
        }
        return (pages, messages, ends)
    }

    @Test func `given a segment, then its users go to rules in pages with the event, and get no push`() async throws {
        try await Fixture.withStore { _, pool in
            try await Self.fill(pool, 450)
            let (pages, _, ends) = try await Self.pages(
                A.notification(.everyone, resolving: Self.event), pool, size: 4000)
            #expect(pages.flatMap(\.users).count == 450 && Set(pages.flatMap(\.users)).count == 450)
            #expect(pages.allSatisfy { $0.users.count <= SegmentPage.maximumUsers && $0.event == Self.event })
            #expect(Set(pages.map(\.source)).count == pages.count && pages.count >= 3)
            #expect(pages.map(\.rule).allSatisfy { $0 == "announcement" })
            guard case .finished(nil) = ends.last else {
                Issue.record("\(ends)")
                return
            }
        }
    }

    @Test func `given a segment that nobody matches, then its end says so`() async throws {
        try await Fixture.withStore { _, pool in
            try await Self.fill(pool, 3)
            let (pages, messages, ends) = try await Self.pages(
                A.notification(.group(.tag(A.name("nobody"))), resolving: Self.event), pool, size: 4000)
            #expect(pages.isEmpty && messages == 0)
            guard case .finished(let message?) = ends.last else {
                Issue.record("\(ends)")
                return
            }
            let event = try CloudEvents.decode(
                routingKey: message.routingKey, contentType: nil, headers: [:], body: message.body)
            #expect(try SegmentPage(event).users.isEmpty && event.id == "offer-1")
        }
    }

    @Test func `a hold-out leaves out about its share, and the same users in each step`() async throws {
        try await Fixture.withStore { _, pool in
            try await Self.fill(pool, 1000)
            let notification = A.notification(.everyone, holdOut: 30)
            let told = try await A.walk(notification, CampaignStore(pool), limit: 100).told
            #expect((600...800).contains(told.count), "\(told.count)")
            let audience = try #require(notification.audience)
            let expected = (1...1000).filter { !audience.isHeldOut(A.user("user-\($0)")) }.map { "token-\($0)" }
            #expect(told == expected.sorted())
            // Another campaign draws anew.
            var other = audience
            other.campaign = UUID(uuidString: "0c0c0c0c-0000-5000-8000-000000000002")!
            #expect(
                (1...1000).contains {
                    other.isHeldOut(A.user("user-\($0)")) != audience.isHeldOut(A.user("user-\($0)"))
                })
        }
    }

    @Test func `the audience of a segment has a wire form that earlier readers refuse`() throws {
        let notification = A.notification(.everyone, holdOut: 5, resolving: Self.event)
        let body = try notification.wireBody()
        let text = String(decoding: body, as: UTF8.self)
        #expect(text.contains(#""resolve":true"#) && text.contains(#""holdOut":5"#))
        #expect(try PushProtocol.Notification.decode(wireBody: body) == notification)
        let plain = String(decoding: try A.notification(.everyone).wireBody(), as: UTF8.self)
        #expect(!plain.contains("resolve") && !plain.contains("holdOut"))
    }
}
