import ServiceKit
import Testing

@Suite struct ReadinessTests {
    @Test func `nothing to wait for is ready`() {
        #expect(Readiness().report.isReady)
    }

    @Test func `conditions are asked anew each time, in the order they came`() {
        let readiness = Readiness()
        let topology = readiness.condition("topology", waiting: "not verified yet")
        readiness.register("broker") { .waiting("connecting") }
        #expect(readiness.report.conditions.map(\.name) == ["topology", "broker"])
        #expect(readiness.report.conditions.map(\.state) == [.waiting("not verified yet"), .waiting("connecting")])
        topology.set(.holds)
        readiness.register("broker") { .holds }
        #expect(readiness.report.isReady)
        topology.set(.waiting("queue rules.events is missing"))
        #expect(!readiness.report.isReady)
    }

    @Test func `what is only told is told, and takes nobody out of service`() {
        let readiness = Readiness()
        readiness.register("lane") { .degraded("the key is refused") }
        #expect(readiness.report.isReady)
        #expect(readiness.report.conditions.map(\.state) == [.degraded("the key is refused")])
    }

    @Test func `draining is not ready, whatever holds`() {
        let readiness = Readiness()
        readiness.register("broker") { .holds }
        readiness.drain()
        #expect(!readiness.report.isReady)
        #expect(readiness.report.isDraining)
    }
}
