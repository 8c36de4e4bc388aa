import ServiceConnections
import ServiceKit
import Testing
import TestSupport

/// Plaintext connections over a network need an explicit setting.
@Suite struct TransportSecurityTests {
    private func problems(_ environment: [String: String]) -> [String] {
        do {
            _ = try Settings.load(keys: .amqp + .postgres, environment: environment)
            return []
        } catch {
            return error.problems
        }
    }

    private static let localBroker = "amqp://svc:s3cret@localhost/x"
    private static let localDatabase = "postgresql://svc:s3cret@localhost/x"

    @Test(arguments: [
        "amqps://svc:s3cret@broker.example/x", "amqps://svc:s3cret@a.example,b.example/x",
        "amqp://svc:s3cret@localhost/x",
        "amqp://svc:s3cret@LOCALHOST:5672/x", "amqp://svc:s3cret@127.0.0.1/x", "amqp://svc:s3cret@127.8.8.8,[::1]/x",
    ])
    func `a broker with TLS or on a local host is accepted`(url: String) {
        #expect(problems(["AMQP_URL": url, "DATABASE_URL": Self.localDatabase]) == [])
    }

    @Test(arguments: [
        ("amqp://svc:s3cret@broker.example/x", "broker.example:5672"),
        ("amqp://svc:s3cret@10.0.0.7:99/x", "10.0.0.7:99"),
        ("amqp://svc:s3cret@localhost,broker/x", "broker:5672"),
        ("amqp://svc:s3cret@127.0.0.1.example/x", "127.0.0.1.example:5672"),
        ("amqp://svc:s3cret@[fe80::1],broker/x", "[fe80::1]:5672, broker:5672"),
        ("amqp://svc:s3cret@127.0.0.999/x", "127.0.0.999:5672"),
    ])
    func `a remote broker without TLS is rejected with its host and the remedy`(url: String, hosts: String) {
        let expected =
            "AMQP_URL: the connection to \(hosts) has no TLS; use amqps://, or set HELIOGRAPH_ALLOW_PLAINTEXT=yes if "
            + "the network is trusted"
        #expect(problems(["AMQP_URL": url, "DATABASE_URL": Self.localDatabase]) == [expected])
        for permission in ["yes", "true", "1"] {
            let environment = [
                "AMQP_URL": url, "DATABASE_URL": Self.localDatabase, "HELIOGRAPH_ALLOW_PLAINTEXT": permission,
            ]
            #expect(problems(environment) == [])
        }
    }

    @Test(arguments: [
        "postgresql://svc:s3cret@db.example/x?sslmode=verify-full", "postgresql://svc:s3cret@localhost/x",
        "postgresql://svc:s3cret@a.example,b.example/x?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        "postgresql://svc:s3cret@127.0.0.1:5433/x?sslmode=disable", "postgresql://svc@%2Frun%2Fpostgresql/x",
        "postgresql://svc:s3cret@db.example/x?hostaddr=127.0.0.1",
    ])
    func `a database with verified TLS or on a local host is accepted`(url: String) {
        #expect(problems(["AMQP_URL": Self.localBroker, "DATABASE_URL": url]) == [])
    }

    @Test(arguments: [
        ("postgresql://svc:s3cret@db.example/x", "db.example"), ("postgres://svc:s3cret@10.0.0.7/x", "10.0.0.7"),
        ("postgresql://svc:s3cret@db.example/x?sslmode=require", "db.example"),
        ("postgresql://svc:s3cret@db.example/x?sslmode=verify-ca", "db.example"),
        ("postgresql://svc:s3cret@localhost,db.example/x?sslmode=prefer", "db.example"),
        ("postgresql://svc:s3cret@localhost/x?hostaddr=10.0.0.7", "10.0.0.7"),
        ("postgresql://svc:s3cret@localhost/x?host=db.example", "db.example"),
    ])
    func `a remote database without verified TLS is rejected with its host and the remedy`(url: String, hosts: String) {
        let expected =
            "DATABASE_URL: the certificate of \(hosts) is not verified; add ?sslmode=verify-full&sslrootcert=FILE to "
            + "the URL, or set HELIOGRAPH_ALLOW_PLAINTEXT=yes if the network is trusted"
        #expect(problems(["AMQP_URL": Self.localBroker, "DATABASE_URL": url]) == [expected])
        let allowed = ["AMQP_URL": Self.localBroker, "DATABASE_URL": url, "HELIOGRAPH_ALLOW_PLAINTEXT": "yes"]
        #expect(problems(allowed) == [])
    }

    @Test func `both are reported at once, without passwords`() {
        let found = problems(["AMQP_URL": "amqp://svc:s3cret@b/x", "DATABASE_URL": "postgresql://svc:s3cret@d/x"])
        #expect(found.count == 2)
        #expect(!found.joined().contains("s3cret"))
    }

    @Test func `a no does not allow plaintext, and an invalid value is reported`() {
        var environment = ["AMQP_URL": "amqp://svc:s3cret@b/x", "DATABASE_URL": Self.localDatabase]
        environment["HELIOGRAPH_ALLOW_PLAINTEXT"] = "no"
        #expect(problems(environment).count == 1)
        environment["HELIOGRAPH_ALLOW_PLAINTEXT"] = "perhaps"
        #expect(problems(environment).contains { $0.hasPrefix("HELIOGRAPH_ALLOW_PLAINTEXT: ") })
    }

    @Test func `a URL from a file is checked too`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("amqp-url", "amqp://svc:s3cret@broker.example/x\n")
        let found = problems(["AMQP_URL_FILE": file, "DATABASE_URL": Self.localDatabase])
        #expect(found.count == 1 && found.first?.contains("HELIOGRAPH_ALLOW_PLAINTEXT") == true)
    }
}
