import PushProtocol
import Testing

@testable import Pushctl

@Suite struct BrokerDefinitionsTests {
    static let definitions = BrokerDefinitions(apps: ["family-portal", "other"].compactMap(AppID.init(rawValue:)))

    @Test func `every role and every app's upstream has a user with a password`() throws {
        let names = Self.definitions.users.map(\.name)
        #expect(
            Set(names) == [
                "topology", "rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback",
                "events-api", "webhook-sender", "dead-letters",
                "upstream-family-portal", "upstream-other", "administrator",
            ])
        var asked: [String] = []
        let json = Self.definitions.json { user in
            asked.append(user)
            return "secret"
        }
        #expect(asked == names)
        #expect(json["permissions"]?.array?.count == names.count)
        #expect("\(json)".contains("secret") == false)
    }

    @Test func `an upstream service may publish events of its own app only, and the registry pages of segments`() throws
    {
        let json = Self.definitions.json { _ in "x" }
        let topics = try #require(json["topic_permissions"]?.array).filter { $0["exchange"] == "events" }
        let written = topics.map { [$0["user"], $0["write"]].map { $0?.string } }
        #expect(
            Set(written) == [
                ["upstream-family-portal", #"^family-portal\."#], ["upstream-other", #"^other\."#],
                ["events-api", #"^[a-z0-9-]+\."#], ["rules", #"^[a-z0-9-]+\..+$"#],
                ["token-registry", #"^[a-z0-9-]+\.heliograph\.segment\.page$"#],
            ])
    }

    @Test func `every stage has a topic permission for each topic exchange that it may write to`() throws {
        let topics = try #require(Self.definitions.json { _ in "x" }["topic_permissions"]?.array)
        let topicExchanges = Topology(apps: []).exchanges.filter { $0.kind == .topic }.map(\.name)
        for role in BusRole.allCases where ![.topology, .deadLetters, .upstream].contains(role) {
            let write = try Regex(role.permissions.write)
            let writable = topicExchanges.filter { $0.wholeMatch(of: write) != nil }
            let held = topics.filter { $0["user"] == .string(role.rawValue) }.compactMap { $0["exchange"]?.string }
            #expect(Set(held) == Set(writable) && held.count == writable.count, "\(role)")
        }
    }

    @Test func `an upstream service may read its own reports only`() throws {
        let permissions = try #require(Self.definitions.json { _ in "x" }["permissions"]?.array)
        let reads = permissions.filter { $0["user"]?.string?.hasPrefix("upstream-") == true }
            .map { [$0["user"], $0["read"]].map { $0?.string } }
        #expect(
            reads == [
                ["upstream-family-portal", #"^upstream\.reports\.family-portal$"#],
                ["upstream-other", #"^upstream\.reports\.other$"#],
            ])
    }

    @Test func `only the administrator has the administrator tag`() throws {
        let users = try #require(Self.definitions.json { _ in "x" }["users"]?.array)
        #expect(users.filter { $0["tags"] != [] }.map { $0["name"] } == ["administrator"])
    }

    @Test func `the definitions include the policies`() throws {
        let policies = try #require(Self.definitions.json { _ in "x" }["policies"]?.array)
        #expect(policies.count == 2)
        #expect(policies[0]["vhost"] == "heliograph" && policies[0]["name"] == "dead-letters")
        #expect(policies[0]["pattern"] == .string(Topology.deadLetters.pattern))
        #expect(policies[0]["apply-to"] == "queues" && policies[0]["priority"] == 1)
        #expect(policies[0]["definition"] == ["message-ttl": 1_209_600_000])
        #expect(policies[1]["name"] == "dead-pushes" && policies[1]["priority"] == 2)
        #expect(policies[1]["definition"] == ["message-ttl": 604_800_000])
    }

    /// The example of rabbitmq.com/docs/passwords.
    @Test func `a password hash has RabbitMQ's format`() {
        let hash = RabbitMQPassword.hash("test12", salt: [0x90, 0x8d, 0xc6, 0x0a])
        #expect(hash == "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR")
    }
}
