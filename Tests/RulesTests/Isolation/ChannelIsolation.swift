import AMQP
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Rules

extension WorkerIsolationTests {
    func keepChannels() async throws {
        try await Self.with("{ type: news }") { (fixture: TwoAppFixture) async throws in
            for (app, environment) in [(Self.bad, "moon"), (Self.good, "production")] {
                try await fixture.pool.execute(
                    """
                    INSERT INTO rules.channel (id, app, environment, channel, ends_at, due_at)
                    VALUES (gen_random_uuid(), \(app.rawValue), \(environment), 'dHN0', \(fixture.clock.now.date),
                        \(fixture.clock.now.date))
                    """)
            }
            try await ChannelKeeper(
                service: "rules", store: ChannelStore(pool: fixture.pool, logger: .silent),
                currentRules: fixture.currentRules, bus: fixture.bus, now: { fixture.clock.now }, logger: .silent
            ).requestDue()
            let requests = try fixture.bus.messages(in: WorkQueue.apnsSenderChannels.name).map {
                try ChannelRequest.decode(wireBody: $0.body)
            }
            #expect(requests.map(\.app) == [Self.good])
            #expect(try await fixture.dead(.channel) == ["unreadable"])
        }
    }
}
