import ServiceConnections
import ServiceKit
import Testing
import TestSupport

@Suite struct SettingsTests {
    static let port = ConfigurationKey("SAMPLE_PORT", .port, default: "8080", summary: "A port.")
    static let secret = ConfigurationKey("SAMPLE_KEY", required: true, secret: true, summary: "A key.")
    static let wait = ConfigurationKey(
        "SAMPLE_WAIT", .duration(.milliseconds(1) ... .seconds(60)), summary: "A wait.")

    /// Returns the problems of loading.
    private func problems(_ keys: [ConfigurationKey], _ environment: [String: String]) -> [String] {
        do {
            _ = try Settings.load(keys: keys, environment: environment)
            return []
        } catch {
            return error.problems
        }
    }

    @Test func `the environment takes precedence over the file, and the file over the default`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("service.env", "# a comment\n\nSAMPLE_PORT = 1111\nSAMPLE_WAIT=2s\n")
        let keys = [Self.port, Self.wait]
        let both = try Settings.load(
            keys: keys, environment: ["HELIOGRAPH_CONFIG": file, "SAMPLE_PORT": "2222", "PATH": "/bin"])
        #expect(try both.integer(Self.port) == 2222)
        #expect(try both.duration(Self.wait) == .seconds(2))
        #expect(try Settings.load(keys: keys, environment: [:]).integer(Self.port) == 8080)
        #expect(try Settings.load(keys: keys, environment: [:]).optionalString(Self.wait) == nil)
    }

    @Test func `all problems are reported at once, with key, value and expectation`() throws {
        let found = problems(
            [Self.port, Self.secret, Self.wait],
            ["SAMPLE_PORT": "abc", "SAMPLE_WAIT": "5 parsecs", "HELIOGRAPH_ADMIN_PROT": "1", "LOG_LEVEL": "loud"])
        #expect(
            found.sorted() == [
                "HELIOGRAPH_ADMIN_PROT: unknown variable; did you mean HELIOGRAPH_ADMIN_PORT?",
                "LOG_LEVEL: “loud” is not one of trace, debug, info, notice, warning, error, critical",
                "SAMPLE_KEY (or SAMPLE_KEY_FILE): is required; A key.",
                "SAMPLE_PORT: “abc” is not a port (1–65535, or 0 for any free one)",
                "SAMPLE_WAIT: “5 parsecs” is not a duration from 1ms to 1m, such as 250ms, 5s, 2m or 1h",
            ])
    }

    @Test func `a secret is not quoted, however malformed`() {
        let found = problems(.amqp, ["AMQP_URL": "http://guest:hunter2@broker"])
        #expect(found == ["AMQP_URL: its value is not a URL of the form amqp://host/… or amqps://host/…"])
    }

    @Test func `a short secret is rejected with the minimum length and a command to create one`() throws {
        let key = ConfigurationKey("SAMPLE_KEY", .longSecret(bytes: 32), secret: true, summary: "A key.")
        let refusal =
            "SAMPLE_KEY: its value is not a secret of at least 32 bytes (create one with `openssl rand -hex 32`)"
        #expect(problems([key], ["SAMPLE_KEY": String(repeating: "x", count: 31)]) == [refusal])
        #expect(problems([key], ["SAMPLE_KEY": String(repeating: "x", count: 32)]) == [])
        #expect(problems([key], [:]) == [])
        let folder = try TemporaryFolder()
        let file = try folder.write("key", "s3cret\n")
        #expect(problems([key], ["SAMPLE_KEY_FILE": file]) == [refusal])
    }

    @Test func `a secret can come from a file, without the trailing newline`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("key", "s3cret\n")
        let settings = try Settings.load(keys: [Self.secret], environment: ["SAMPLE_KEY_FILE": file])
        #expect(try settings.string(Self.secret) == "s3cret")
    }

    @Test func `a secret set twice, or by a missing file, is rejected`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("key", "s3cret\n")
        #expect(
            problems([Self.secret], ["SAMPLE_KEY": "a", "SAMPLE_KEY_FILE": file])
                == ["SAMPLE_KEY_FILE: is set together with SAMPLE_KEY; set only one of them"])
        #expect(
            problems([Self.secret], ["SAMPLE_KEY_FILE": "/nowhere/key"])
                == ["SAMPLE_KEY_FILE: “/nowhere/key” is not a readable file with the secret"])
    }

    @Test func `a script's variable is ignored`() {
        #expect(problems([], ["HELIOGRAPH_SKIP_BUILD": "1"]).count == 1)
    }

    @Test func `only a secret has a file variant`() {
        #expect(
            problems([], ["HELIOGRAPH_ADMIN_PORT_FILE": "x"])
                == ["HELIOGRAPH_ADMIN_PORT_FILE: unknown variable; did you mean HELIOGRAPH_ADMIN_PORT?"])
    }

    @Test func `an unknown, repeated or malformed line of the file is rejected with its number`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("service.env", "SAMPLE_PROT=1\nSAMPLE_PORT=1\n\nSAMPLE_PORT=2\nnonsense\n")
        #expect(
            problems([Self.port], ["HELIOGRAPH_CONFIG": file]) == [
                "\(file):1: SAMPLE_PROT: unknown key; did you mean SAMPLE_PORT?",
                "\(file):4: SAMPLE_PORT: is set twice",
                "\(file):5: expected NAME=VALUE",
            ])
    }

    @Test func `a missing configuration file is rejected`() {
        #expect(
            problems([], ["HELIOGRAPH_CONFIG": "/nowhere/service.env"])
                == ["HELIOGRAPH_CONFIG: “/nowhere/service.env” is not a file that exists and can be read"])
    }

    @Test func `an empty variable counts as absent`() throws {
        let settings = try Settings.load(keys: [Self.port], environment: ["SAMPLE_PORT": ""])
        #expect(try settings.integer(Self.port) == 8080)
        #expect(problems([Self.secret], ["SAMPLE_KEY": ""]).count == 1)
    }

    @Test func `common keys, variables of tests and of other programs are ignored`() {
        let environment = [
            "HELIOGRAPH_TEST_AMQP_URL": "x", "AMQP_URL": "not a url", "HOME": "/", "DATABASE_URL": "",
        ]
        #expect(problems([Self.port], environment) == [])
    }

    @Test func `reading an undeclared key is an error`() throws {
        let settings = try Settings.load(keys: [], environment: [:])
        #expect(throws: ConfigurationError("SAMPLE_PORT: is not among this service's declared keys")) {
            try settings.integer(Self.port)
        }
    }

    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("5s", .seconds(5)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
    ])
    func `durations carry their unit`(text: String, expected: Duration) throws {
        let key = ConfigurationKey("SAMPLE_WAIT", .duration(.zero ... .seconds(7200)), summary: "A wait.")
        let settings = try Settings.load(keys: [key], environment: ["SAMPLE_WAIT": text])
        #expect(try settings.duration(key) == expected)
    }

    @Test(arguments: ["5", "-5s", "5 s", "s", "1d", "99999999999s", "５s"])
    func `malformed durations are rejected`(text: String) {
        let key = ConfigurationKey("SAMPLE_WAIT", .duration(.zero ... .seconds(7200)), summary: "A wait.")
        #expect(problems([key], ["SAMPLE_WAIT": text]).count == 1)
    }

    @Test(arguments: [
        ("amqp://broker/x", true), ("amqps://u:p@a:5671,b:5671/vhost", true), ("amqp:///x", false),
        ("amqp://u:p@/x", false), ("broker", false), ("amqp://bro ker/", false),
    ])
    func `a URL has one of the schemes and a host`(text: String, isLegal: Bool) {
        let environment = ["AMQP_URL": text, "HELIOGRAPH_ALLOW_PLAINTEXT": "yes"]
        #expect(problems(.amqp, environment).isEmpty == isLegal)
    }
}
