import Testing

@testable import AMQP

@Suite struct AMQPConfigurationTests {
    private static func parse(_ url: String) throws -> AMQPConfiguration {
        try AMQPConfiguration(url: url, connectionName: "test")
    }

    @Test func `every URL part is parsed and decoded`() throws {
        let configuration = try Self.parse("amqp://us%40er:p%2Fss%3Aw@broker:1234/my%2fvhost")
        #expect(configuration.user == "us@er")
        #expect(configuration.password.text == "p/ss:w")
        #expect(configuration.hosts == [.init(name: "broker", port: 1234)])
        #expect(configuration.virtualHost == "my/vhost")
        #expect(!configuration.usesTLS)
    }

    @Test func `hosts with and without ports and IPv6 addresses are parsed`() throws {
        let configuration = try Self.parse("amqps://u:p@a,b:99,[::1],[fe80::1]:7/v")
        #expect(
            configuration.hosts == [
                .init(name: "a", port: 5671), .init(name: "b", port: 99), .init(name: "::1", port: 5671),
                .init(name: "fe80::1", port: 7),
            ])
        #expect(configuration.usesTLS)
    }

    @Test(arguments: ["amqp://u:p@h", "amqp://u:p@h/", "amqp://u:p@h/%2f"])
    func `no virtual host means the default one`(url: String) throws {
        #expect(try Self.parse(url).virtualHost == "/")
    }

    @Test(arguments: [
        "", "amqp", "http://u:secret@h", "amqp://h/v", "amqp://u@h", "amqp://:secret@h", "amqp://u:secret@",
        "amqp://u:secret@h:0", "amqp://u:secret@h:65536", "amqp://u:secret@h:x", "amqp://u:secret@a,,b",
        "amqp://u:secret@h/a/b", "amqp://u:secret@h/v?heartbeat=5", "amqp://u:secret%@h", "amqp://u:secret%+1@h",
        "amqp://u:secret%00@h", "amqp://u:secret%ff@h", "amqp://u:secret@[::1", "amqp://u:secret@[::1]x",
        "amqp://u:secret@::1", "amqp://u:secret@h h",
    ])
    func `an invalid URL is refused without showing the password`(url: String) {
        let error = #expect(throws: AMQPError.self) { try Self.parse(url) }
        #expect(error?.code == .configuration)
        #expect(error.map { "\($0)" }?.contains("secret") == false)
    }

    @Test func `printing shows no password`() throws {
        let configuration = try Self.parse("amqp://user:secret@h/v")
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in ["\(configuration)", String(reflecting: configuration), dumped] {
            #expect(!text.contains("secret"))
        }
        #expect("\(configuration)" == "amqp://user@h:5672/v")
    }

    @Test(arguments: [0, 601]) func `a heartbeat out of range is refused`(seconds: Int) {
        #expect(throws: AMQPError.self) {
            try AMQPConfiguration(url: "amqp://u:p@h", connectionName: "", heartbeat: .seconds(seconds))
        }
    }
}
