import PushProtocol
import Testing
import TestSupport

@Suite(.timeLimit(.minutes(1))) struct BrokerConfigurationTests {
    @Test func `the broker loads the definitions from the mounted file`() throws {
        let configuration = try Repository.text("deploy/rabbitmq/rabbitmq.conf")
        #expect(configuration.contains("\nload_definitions = /run/heliograph/rabbitmq-definitions.json\n"))
        let compose = try Manifest.one("docker-compose.yml")["services.rabbitmq.volumes"]?.items.compactMap(\.text)
        #expect(compose?.contains("credentials:/run/heliograph:ro") == true)
        #expect(compose?.contains("./deploy/rabbitmq/rabbitmq.conf:/etc/rabbitmq/rabbitmq.conf:ro") == true)
    }

    @Test func `every broker's message size limit is far above that of the stages`() throws {
        let line = try #require(
            Repository.text("deploy/rabbitmq/rabbitmq.conf").split(separator: "\n").first {
                $0.hasPrefix("max_message_size = ")
            })
        let limit = try #require(line.split(separator: " ").last.flatMap { Int($0) })
        #expect((2 * WireCoding.maximumBodySize...8 * WireCoding.maximumBodySize).contains(limit))
        #expect(try Repository.text("deploy/local/lib/broker.sh").contains("max_message_size"))
    }

    /// For brokers that do not load the definitions.
    @Test(arguments: Topology.policies)
    func `the README has the command for each dead-letter policy`(policy: Topology.Policy) throws {
        guard case .number(let kept)? = policy.definition["message-ttl"] else {
            Issue.record("the policy has no time")
            return
        }
        let command = #"""
                rabbitmqctl set_policy -p heliograph --apply-to queues --priority \#(policy.priority) \#(policy.name) \
                  '\#(policy.pattern)' \
                  '{"message-ttl":\#(kept)}'

            """#
        #expect(try Repository.text("deploy/kubernetes/README.md").contains(command))
    }

    @Test func `the definitions contain every role and no password`() async throws {
        let credentials = try await Credentials.make()
        let file = try Repository.bytes("\(credentials.folder.path)/rabbitmq-definitions.json")
        let definitions = try WireCoding.decode(JSONValue.self, from: file)
        let users = (definitions["users"]?.array ?? []).compactMap { $0["name"]?.string }
        let roles = BusRole.allCases.filter { $0 != .upstream }.map(\.rawValue)
        #expect(Set(users).isSuperset(of: roles))
        #expect(definitions["policies"]?.array?.map { $0["name"] } == ["dead-letters", "dead-pushes"])
        let password = try Repository.bytes("\(credentials.folder.path)/broker-rules")
        #expect(!String(decoding: file, as: UTF8.self).contains(String(decoding: password, as: UTF8.self).prefix(48)))
    }
}
