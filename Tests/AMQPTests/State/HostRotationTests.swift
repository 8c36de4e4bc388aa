import Testing

@testable import AMQP

@Suite struct HostRotationTests {
    private let hosts: [AMQPConfiguration.Host] = [
        .init(name: "a", port: 1), .init(name: "b", port: 1), .init(name: "c", port: 1),
    ]

    @Test func `hosts are tried in turn, with a pause after each round`() {
        var rotation = HostRotation()
        var tried: [String] = []
        var pauses: [Bool] = []
        for _ in 0..<7 {
            tried.append(rotation.next(of: hosts).name)
            rotation.failed()
            pauses.append(rotation.needsPause(hosts: hosts.count))
        }
        #expect(tried == ["a", "b", "c", "a", "b", "c", "a"])
        #expect(pauses == [false, false, true, false, false, true, false])
    }

    @Test func `after a stable connection the other hosts are tried without a pause`() {
        var rotation = HostRotation()
        for _ in 0..<2 {
            _ = rotation.next(of: hosts)
            rotation.failed()
        }
        #expect(rotation.next(of: hosts).name == "c")
        rotation.wasStable()
        rotation.failed()
        #expect(rotation.failures == 1 && !rotation.needsPause(hosts: 3))
        #expect(rotation.next(of: hosts).name == "a")
    }

    @Test func `with one host every failure has a pause`() {
        var rotation = HostRotation()
        for _ in 0..<3 {
            _ = rotation.next(of: [hosts[0]])
            rotation.failed()
            #expect(rotation.needsPause(hosts: 1))
        }
    }
}
