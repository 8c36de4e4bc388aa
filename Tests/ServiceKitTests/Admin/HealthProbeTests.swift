import Testing

@testable import ServiceKit

@Suite struct HealthProbeTests {
    @Test func `the probe reads status and body`() {
        #expect(HealthProbe.parse("HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\n{}") == .answered(503, "{}"))
        #expect(HealthProbe.parse("HTTP/1.1 200 OK\r\n\r\n") == .answered(200, ""))
    }

    @Test(arguments: ["", "SSH-2.0-x\r\n", "HTTP/1.1 abc\r\n\r\n"])
    func `text other than HTTP is unreachable`(text: String) {
        #expect(HealthProbe.parse(text) == .unreachable("no response in time"))
    }

    @Test func `a closed port is reported as unreachable`() async {
        // Port 1 is privileged and unused.
        #expect(
            await HealthProbe.get(host: "127.0.0.1", port: 1, path: "/")
                == .unreachable("nothing listens on 127.0.0.1:1"))
    }

    @Test func `a server on all addresses is probed on loopback`() {
        #expect(HealthProbe.probeHost("0.0.0.0") == "127.0.0.1")
        #expect(HealthProbe.probeHost("::") == "::1")
        #expect(HealthProbe.probeHost("10.0.0.1") == "10.0.0.1")
    }
}
