import ServiceKit
import Testing

@Suite struct ReadinessTests {
    @Test func `a process without conditions is ready`() {
        #expect(Readiness().report.isReady)
    }

    @Test func `conditions are checked on each report, in the order of registration`() {
        let readiness = Readiness()
        let topology = readiness.condition("topology", .waiting("not verified yet"))
        readiness.register("broker") { .waiting("connecting") }
        #expect(readiness.report.conditions.map(\.name) == ["topology", "broker"])
        #expect(readiness.report.conditions.map(\.state) == [.waiting("not verified yet"), .waiting("connecting")])
        topology.set(.holds)
        readiness.register("broker") { .holds }
        #expect(readiness.report.isReady)
        topology.set(.waiting("queue rules.events is missing"))
        #expect(!readiness.report.isReady)
    }

    @Test func `a degraded condition is reported, and the process stays ready`() {
        let readiness = Readiness()
        readiness.register("lane") { .degraded("the key is refused") }
        #expect(readiness.report.isReady)
        #expect(readiness.report.conditions.map(\.state) == [.degraded("the key is refused")])
    }

    @Test func `a draining process is not ready even if all conditions hold`() {
        let readiness = Readiness()
        readiness.register("broker") { .holds }
        readiness.drain()
        #expect(!readiness.report.isReady)
        #expect(readiness.report.isDraining)
    }
}
