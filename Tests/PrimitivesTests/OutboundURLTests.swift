import Primitives
import Testing

/// URLs that others choose must not reach networks of the operator.
@Suite struct OutboundURLTests {
    private static func refusal(_ text: String, privateNetworks: Bool = false, plaintext: Bool = false) -> String? {
        do {
            return try OutboundURL(text).refusal(privateNetworks: privateNetworks, plaintext: plaintext)?.description
        } catch {
            return error.description
        }
    }

    @Test(arguments: [
        "https://hooks.example/heliograph?key=a%20b", "https://HOOKS.example", "https://hooks.example:8443/",
        "https://93.184.216.34/x", "https://[2606:2800:220:1:248:1893:25c8:1946]:443/x",
        "https://xn--bcher-kva.example/",
        "https://a_b.example/", "https://172.15.0.1/", "https://172.32.0.1/", "https://100.63.0.1/",
        "https://11.0.0.1/",
    ]) func `public destinations are accepted`(text: String) { #expect(Self.refusal(text) == nil) }

    /// Refused without the setting, accepted with it.
    @Test(arguments: [
        "https://127.0.0.1/", "https://127.255.255.254/", "https://10.0.0.1/", "https://172.16.0.1/",
        "https://172.31.255.255/", "https://192.168.1.1:8443/", "https://100.64.0.1/", "https://100.127.255.255/",
        "https://[::1]/", "https://[fc00::1]/", "https://[fdff::1]/", "https://localhost/", "https://LOCALHOST/",
        "https://a.localhost/", "https://printer.local/", "https://db.internal/", "https://nas.home.arpa/",
    ]) func `private destinations need the setting`(text: String) {
        #expect(Self.refusal(text) != nil)
        #expect(Self.refusal(text, privateNetworks: true) == nil)
    }

    /// Refused always.
    @Test(arguments: [
        // Metadata services, multicast, unspecified, broadcast, documentation, benchmarks, reserved.
        "https://169.254.169.254/latest/meta-data", "https://[fe80::1]/", "https://[febf::1]/", "https://224.0.0.1/",
        "https://239.255.255.255/", "https://[ff02::1]/", "https://0.0.0.0/", "https://0.1.2.3/", "https://[::]/",
        "https://255.255.255.255/", "https://240.0.0.1/", "https://192.0.2.1/", "https://198.51.100.1/",
        "https://203.0.113.1/", "https://198.18.0.1/", "https://198.19.255.255/", "https://192.0.0.8/",
        "https://192.88.99.1/", "https://[2001:db8::1]/", "https://[3fff::1]/", "https://[2001:10::1]/",
        "https://[100::1]/", "https://[fec0::1]/", "https://[4000::1]/", "https://[5f00::1]/",
        // IPv4 in IPv6: mapped, compatible, translated, NAT64, Teredo, 6to4.
        "https://[::ffff:127.0.0.1]/", "https://[::ffff:8.8.8.8]/", "https://[::7f00:1]/",
        "https://[::ffff:0:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/", "https://[64:ff9b:1::1]/", "https://[2001:0:4136:e378::1]/",
        "https://[2002:7f00:1::]/",
        // Numbers that parsers read as addresses.
        "https://2130706433/", "https://0x7f000001/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.01/",
        "https://0x7f.0.0.1/", "https://1.2.3.4.5/", "https://127.0.0.1./", "https://example.0x7f/",
        // Other forms.
        "", "https://", "https:///x", "https://?x", "http://hooks.example/", "ftp://hooks.example/", "//hooks.example/",
        "HTTPS://hooks.example/", "file:///etc/passwd", "https://user@hooks.example/", "https://user:pw@hooks.example/",
        "https://hooks.example@127.0.0.1/", "https://127.0.0.1#@hooks.example/", "https://hooks.example\\@127.0.0.1/",
        "https://hooks.example/#x", "https://hooks example/", "https://hooks.example/\n", "https://h\u{0}ooks.example/",
        "https://%31%32%37.0.0.1/", "https://hööks.example/", "https://①②⑦.0.0.1/", "https://hooks..example/",
        "https://.example/", "https://hooks.example:/", "https://hooks.example:x/", "https://hooks.example:99999/",
        "https://hooks.example:-1/", "https://hooks.example:22/", "https://hooks.example:80/",
        "https://hooks.example:0/",
        "https://[::1/", "https://[fe80::1%25eth0]/", "https://[127.0.0.1]/", "https://::1/", "https://[v1.x]/",
    ]) func `all other destinations are refused, also with private networks`(text: String) {
        #expect(Self.refusal(text) != nil)
        #expect(Self.refusal(text, privateNetworks: true, plaintext: true) != nil)
    }

    @Test func `http needs this machine and both settings`() {
        for text in ["http://127.0.0.1:9000/x", "http://localhost:9000/", "http://[::1]:9000/"] {
            #expect(Self.refusal(text) != nil)
            #expect(Self.refusal(text, privateNetworks: true) != nil)
            #expect(Self.refusal(text, plaintext: true) != nil)
            #expect(Self.refusal(text, privateNetworks: true, plaintext: true) == nil)
        }
        #expect(Self.refusal("http://10.0.0.1:9000/", privateNetworks: true, plaintext: true) != nil)
    }

    @Test func `a URL has its host in lower case, its port and its address`() throws {
        let url = try OutboundURL("https://HOOKS.Example:8443/x?y")
        #expect(url.host == "hooks.example" && url.port == 8443 && url.address == nil)
        #expect(try OutboundURL("https://[2606:4700::1]/").address?.prefix(4) == [0x26, 0x06, 0x47, 0])
        #expect(try OutboundURL("https://9.8.7.6/").address == [9, 8, 7, 6])
    }

    @Test func `a refusal names the kind of address`() {
        #expect(Self.refusal("https://10.0.0.1/") == "10.0.0.1 is a private address")
        #expect(Self.refusal("https://169.254.169.254/") == "169.254.169.254 is a link-local address")
        #expect(Self.refusal("https://db.internal/") == "db.internal is a name of a private network")
        #expect(Self.refusal("https://a:b@hooks.example/") == "it contains credentials; use the signature")
        #expect(Self.refusal("https://" + String(repeating: "a", count: 3000)) == "it is longer than 2048 bytes")
    }

    @Test func `bytes that are not an address are reserved`() {
        for count in [0, 3, 5, 15, 17] {
            #expect(!AddressClass([UInt8](repeating: 8, count: count)).isAllowed(privateNetworks: true))
        }
    }
}
