import PushProtocol
import Testing

@testable import ProviderSimulator

/// Outcomes with `share` and `every`, and random delays.
@Suite struct ChanceTests {
    static func tokens(_ count: Int) -> [String] {
        (0..<count).map { "aa" + String(0x1_0000_0000 + $0, radix: 16).dropFirst() + "00" }
    }

    static func faults(_ simulator: Simulator, _ tokens: [String]) -> [String?] {
        tokens.map { token in
            _ = simulator.push { $0.path = "/3/device/\(token)" }
            return simulator.log.requests(of: .apns).last?.response.fault
        }
    }

    @Test func `each fault gets its share of the requests, and the rest is accepted`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            #"[{"provider":"apns","reason":"Unregistered","share":0.1},{"provider":"apns","drop":true,"share":0.05}]"#)
        let book = simulator.state.outcomes
        var counts: [String: Int] = [:]
        for token in Self.tokens(20_000) {
            counts[book.take(.apns, token: token, app: nil)?.label ?? "", default: 0] += 1
        }
        #expect((1800...2200).contains(counts["410 Unregistered"] ?? 0))
        #expect((850...1150).contains(counts["drop"] ?? 0))
        #expect(counts.count == 3)
    }

    @Test func `the same seed gives a token's n-th request the same outcome in any order`() throws {
        func fates(_ tokens: [String], seed: UInt64) throws -> [String: [String?]] {
            let simulator = Fixture.simulator()
            simulator.state.outcomes.reseed(seed)
            try simulator.play(#"[{"provider":"apns","status":503,"share":0.5}]"#)
            var fates: [String: [String?]] = [:]
            for token in tokens + tokens {
                fates[token, default: []].append(
                    simulator.state.outcomes.take(.apns, token: token, app: nil)?.label)
            }
            return fates
        }
        let tokens = Self.tokens(64)
        #expect(try fates(tokens, seed: 7) == fates(tokens.reversed(), seed: 7))
        #expect(try fates(tokens, seed: 7) != fates(tokens, seed: 8))
        let both = try fates(tokens, seed: 7).values
        #expect(both.contains { $0[0] != $0[1] }, "a token's second request gets a new draw")
    }

    @Test func `every n-th request fails after skip, up to count`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(
            #"[{"provider":"apns","status":503,"every":3,"skip":1,"count":2},{"provider":"apns","status":429,"skip":10}]"#
        )
        let statuses = (1...12).map { _ in simulator.push()?.status }
        #expect(statuses == [200, 200, 200, 503, 200, 200, 503, 200, 200, 200, 200, 200])
        #expect(simulator.push()?.status == 429)
    }

    @Test func `faults of one app leave other apps alone`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"fcm","app":"other-project","status":503,"share":1}"#)
        #expect(simulator.send(["token": "t"])?.status == 200)
    }

    @Test(arguments: [
        (Latency.uniform(10...20), 10.0...20.0, 14.0...16.0), (.exponential(mean: 50), 0...3_600_000, 45...55),
        (.quantiles(p50: 20, p99: 200), 0...3_600_000, 25...40),
    ]) func `delays follow their distribution`(
        latency: Latency, range: ClosedRange<Double>, mean: ClosedRange<Double>
    ) {
        let sampled = (0..<10_000).map { number -> Double in
            var random = SeededRandom(seed: 1, subject: "aa", drawNumber: UInt64(number))
            let duration = latency.sample(&random)
            return Double(duration.components.attoseconds) / 1e15 + Double(duration.components.seconds) * 1000
        }.sorted()
        #expect(sampled.allSatisfy(range.contains))
        #expect(mean.contains(sampled.reduce(0, +) / 10_000))
        if case .quantiles(let p50, let p99) = latency {
            #expect(abs(sampled[5000] - p50) < p50 / 10 && abs(sampled[9900] - p99) < p99 / 4)
        }
    }

    @Test func `a drawn delay becomes a wait on the wire`() throws {
        let simulator = Fixture.simulator()
        try simulator.play(#"{"provider":"apns","delay_ms":{"uniform":[5,6]}}"#)
        let actions = simulator.respondAPNs(Fixture.push(), in: .production)
        guard case .wait(let duration)? = actions.first(where: { if case .wait = $0 { true } else { false } }) else {
            Issue.record("nothing waits: \(actions)")
            return
        }
        #expect((.milliseconds(5) ... .milliseconds(6)).contains(duration))
    }

    @Test(arguments: ProviderKind.allCases) func `every fault in the catalogue can be posted and has a unique name`(
        provider: ProviderKind
    ) throws {
        let outcomes = FaultCatalogue.outcomes(of: provider, share: 0.01)
        let scripts = try OutcomeScript.read(.array(outcomes))
        let names = scripts.map { $0.outcome.label }
        #expect(!names.contains(nil) && Set(names).count == outcomes.count, "\(names)")
        #expect(scripts.allSatisfy { $0.outcome.trigger == .share(0.01) })
        let reasons = Set(outcomes.compactMap { $0["reason"]?.string })
        if provider == .apns { #expect(reasons.isSuperset(of: APNsReason.allCases.map(\.rawValue))) }
        let codes = Set(outcomes.compactMap { $0["error_code"]?.string })
        if provider == .webpush { #expect(reasons == Set(WebPushReason.allCases.map(\.rawValue))) }
        if provider == .fcm { #expect(codes == Set(FCMErrorCode.allCases.map(\.rawValue))) }
    }
}
