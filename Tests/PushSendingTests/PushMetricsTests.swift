import FoundationEssentials
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
