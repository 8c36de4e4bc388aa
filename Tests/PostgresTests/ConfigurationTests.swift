import Testing

@testable import Postgres

@Suite struct ConfigurationTests {
    private let url = "postgresql://svc:s3cr%40t@db1,db2:5433/registry?sslmode=verify-full"

    @Test func `all waits have time-outs unless the URL overrides them`() throws {
        let configuration = try PostgresConfiguration(url: url, applicationName: "registry")
        let keywords = configuration.connectionKeywords
        #expect(keywords["host"] == "db1,db2")
        #expect(keywords["password"] == "s3cr@t")
        #expect(keywords["sslmode"] == "verify-full")
        #expect(keywords["connect_timeout"] == "3")
        #expect(keywords["target_session_attrs"] == "read-write")
        #expect(keywords["application_name"] == "registry")
        let options = try #require(keywords["options"])
        #expect(options.contains("statement_timeout=5000"))
        #expect(options.contains("lock_timeout=1000"))
        #expect(options.contains("idle_in_transaction_session_timeout=10000"))
    }

    @Test func `values of the URL take precedence`() throws {
        let own = url + "&connect_timeout=9&options=-c%20lock_timeout%3D7s"
        let keywords = try PostgresConfiguration(url: own, applicationName: "registry").connectionKeywords
        #expect(keywords["connect_timeout"] == "9")
        #expect(keywords["options"]?.hasSuffix("-c lock_timeout=7s") == true)
    }

    @Test(arguments: [
        "", "registry", "host=db1 password=s3cret", "https://svc:s3cret@db1/registry",
        "postgresql://svc:s3cret%@db1/registry", "postgresql://svc:s3cret@db1/registry?s3cret=1",
        "postgresql://svc:s3cret@[db1/registry",
    ])
    func `a malformed URL is rejected without quoting it`(url: String) {
        let error = #expect(throws: PostgresError.self) {
            try PostgresConfiguration(url: url, applicationName: "registry")
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error.map { !"\($0)".contains("s3cret") } == true)
    }

    @Test func `no description contains the password`() throws {
        let configuration = try PostgresConfiguration(url: url, applicationName: "registry")
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in ["\(configuration)", String(reflecting: configuration), dumped] {
            #expect(!text.contains("s3cr"))
        }
        #expect("\(configuration)" == "svc@db1,db2:5433/registry")
    }
}
