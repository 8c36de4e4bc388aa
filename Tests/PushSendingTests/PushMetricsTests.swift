import FoundationEssentials
import Messaging
import Metrics
import MetricsTestKit
import Providers
import PushProtocol
import Testing
import TestSupport

@testable import PushSending

@Suite struct PushMetricsTests {
    private let app = AppID(rawValue: "demo")!
    private let metrics = TestMetrics()

    private func count(_ answers: [Outcome.Answer], in counters: PushMetrics) {
        var outcomes = TargetOutcomes()
        for answer in answers {
            outcomes.append(
                Outcome(notification: .init(), device: nil, answer: answer, at: .sample, registeredAt: nil), of: 0)
        }
        withMetricsFactory(metrics) { counters.count(outcomes.partitioned, of: app) }
    }

    private func refusals(_ reason: String) throws -> Int64 {
        let labels = [("provider", "apns"), ("app", "demo"), ("reason", reason)]
        return try metrics.expectCounter("heliograph_push_refusals_total", labels).totalValue
    }

    @Test(arguments: ["heliograph_route_open", "heliograph_lane_open"])
    func `a route's state is exported under its name and its former name`(name: String) throws {
        let route = ProviderRoute(app: app, environment: .production)
        let labels = [("provider", "apns"), ("app", "demo"), ("environment", "production")]
        let gauge = withMetricsFactory(metrics) { RouteOpenGauge(route, .apns) }
        gauge.record(isOpen: true)
        #expect(try metrics.expectGauge(name, labels).lastValue == 1)
        gauge.record(isOpen: false)
        #expect(try metrics.expectGauge(name, labels).lastValue == 0)
    }

    @Test func `rejections are counted by reason, without the payload member`() throws {
        let counters = PushMetrics(provider: .apns)
        count(
            [
                .accepted(id: nil), .expired, .skipped(reason: "revoked"), .unknown(reason: "timed-out"),
                .unregistered(since: nil, reason: "Unregistered"),
                .rejected(reason: "FutureReason", suspectToken: false),
                .rejected(reason: "FutureReason", suspectToken: false), .throttled(reason: "TooManyRequests"),
                .misconfigured(reason: "BadTopic"),
                .rejected(reason: "fcm-unknown-member:android.notification.titel", suspectToken: false),
            ], in: counters)
        #expect(try refusals("FutureReason") == 2)
        for reason in ["Unregistered", "TooManyRequests", "BadTopic", "fcm-unknown-member"] {
            #expect(try refusals(reason) == 1)
        }
        #expect(metrics.counters.filter { $0.label == "heliograph_push_refusals_total" }.count == 5)
    }

    /// A push with this number of targets, whose event arrived two seconds before the acceptance of ``Timestamp/sample``.
    private func delivery(_ targets: Int, arrivedAt: Timestamp? = Timestamp.sample - .seconds(2)) -> Delivery<Push> {
        let push = Push.sample(targets: (0..<targets).map { _ in .sample() })
        return Delivery(
            inbound: Inbound(
                queue: .senderPushes(.apns, .interactive, push.app), exchange: "pushes", routingKey: "", body: [],
                arrivedAt: arrivedAt), message: push)
    }

    private func outcome(_ answer: Outcome.Answer, after delay: Duration = .zero) -> Outcome {
        Outcome(notification: .init(), device: nil, answer: answer, at: Timestamp.sample + delay, registeredAt: nil)
    }

    @Test func `the delay of a push counts once, at its last acceptance`() throws {
        let pushes = [delivery(3), delivery(1), delivery(1), delivery(1, arrivedAt: nil)]
        var results = PushResults()
        // Of an earlier attempt, which has recorded it.
        results.recall([outcome(.accepted(id: nil))], of: 0)
        results.settle(outcome(.accepted(id: nil)), of: 0)
        results.settle(outcome(.accepted(id: nil), after: .milliseconds(500)), of: 0)
        results.settle(outcome(.expired), of: 1)
        results.settle(outcome(.accepted(id: nil), after: .seconds(-3600)), of: 2)
        results.settle(outcome(.accepted(id: nil)), of: 3)
        let counters = PushMetrics(provider: .apns)
        withMetricsFactory(metrics) { counters.recordDelays(results, of: pushes) }
        let app = pushes[0].message.app.rawValue
        let delays = try metrics.expectTimer(
            "heliograph_event_to_accepted_seconds", [("provider", "apns"), ("app", app), ("lane", "interactive")])
        // A sender whose clock is late records no negative delay.
        #expect(delays.values == [2_500_000_000, 0])
    }

    @Test func `the number of reasons is limited`() throws {
        let counters = PushMetrics(provider: .apns)
        for number in 0..<PushMetrics.maxReasonsPerApp + 50 {
            count([.rejected(reason: "Reason\(number)", suspectToken: false)], in: counters)
        }
        #expect(try refusals("Reason0") == 1 && refusals("others") == 50)
        #expect(
            metrics.counters.filter { $0.label == "heliograph_push_refusals_total" }.count
                == PushMetrics.maxReasonsPerApp + 1)
    }
}
