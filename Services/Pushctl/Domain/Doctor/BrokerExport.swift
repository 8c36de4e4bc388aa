import PushProtocol

/// The definitions of a broker, as `rabbitmqctl export_definitions` writes them. AMQP can read neither rights and
/// policies nor arguments and bindings.
struct BrokerExport: Sendable {
    /// Writes the definitions to standard output.
    static let command = "rabbitmqctl -q export_definitions -"

    private let sections: [String: [[String: JSONValue]]]
    private let host: String

    init(json: [UInt8], host: String = BrokerDefinitions.virtualHost) throws(CommandError) {
        guard let document = (try? WireCoding.decode(JSONValue.self, from: json))?.object else {
            throw CommandError("the broker's definitions are no JSON object; run \(Self.command)", .input)
        }
        sections = document.compactMapValues { $0.array?.compactMap(\.object) }
        self.host = host
        guard sections["users"] != nil, sections["permissions"] != nil else {
            throw CommandError("the broker's definitions have no users; run \(Self.command)", .input)
        }
    }

    /// The entries of a section that belong to the virtual host.
    private func entries(_ section: String) -> [[String: JSONValue]] {
        (sections[section] ?? []).filter { $0["vhost"]?.string == host }
    }

    // MARK: - Users and their rights

    /// The findings about users, permissions and topic permissions. Passwords are not compared.
    func rights(_ expected: BrokerDefinitions) -> [Finding] {
        let check = "broker-rights"
        let known = Set((sections["users"] ?? []).compactMap { $0["name"]?.string })
        var findings: [Finding] = []
        for user in expected.users where user.name != BrokerDefinitions.administrator {
            guard known.contains(user.name) else {
                findings.append(
                    .error(check, "the broker has no user \(user.name)", cure: Self.importDefinitions))
                continue
            }
            findings += problems(user).map { .error(check, $0, cure: Self.cure(user, host)) }
        }
        return findings.orOK(check, "\(expected.users.count - 1) users have exactly the rights that they need")
    }

    private static let importDefinitions =
        "print the definitions with pushctl topology definitions, and import them with rabbitmqctl import_definitions"

    private static func cure(_ user: BrokerDefinitions.User, _ host: String) -> String {
        let rights = user.permissions
        return "\(importDefinitions); or rabbitmqctl set_permissions -p \(host) \(user.name) "
            + [rights.configure, rights.write, rights.read].map { "'\($0)'" }.joined(separator: " ")
    }

    private func problems(_ user: BrokerDefinitions.User) -> [String] {
        guard let actual = entries("permissions").first(where: { $0["user"]?.string == user.name }) else {
            return ["the user \(user.name) has no permissions in the virtual host \(host)"]
        }
        let rights = user.permissions
        let pairs = [("configure", rights.configure), ("write", rights.write), ("read", rights.read)]
        var problems = pairs.compactMap { name, pattern -> String? in
            let found = actual[name]?.string ?? ""
            return found == pattern ? nil : "the user \(user.name) may \(name) “\(found)”, expected is “\(pattern)”"
        }
        let topics = entries("topic_permissions").filter { $0["user"]?.string == user.name }
        for topic in user.topics {
            let found = topics.first { $0["exchange"]?.string == topic.exchange.name }?["write"]?.string
            guard found != topic.write else { continue }
            problems.append(
                "the user \(user.name) may publish to \(topic.exchange.name) with \(found.map { "“\($0)”" } ?? "any key"), "
                    + "expected is “\(topic.write)”")
        }
        return problems
    }

    // MARK: - Policies

    func policies() -> [Finding] {
        let check = "policies"
        let findings: [Finding] = Topology.policies.compactMap { policy in
            let cure =
                "\(Self.importDefinitions); dead letters are otherwise kept for ever, and sent after their revocations"
            guard let actual = entries("policies").first(where: { $0["name"]?.string == policy.name }) else {
                return .error(check, "the policy \(policy.name) is missing", cure: cure)
            }
            let definition = JSONValue.object(policy.definition.mapValues(\.json))
            let isSame =
                actual["pattern"]?.string == policy.pattern && actual["definition"] == definition
                && actual["priority"]?.int == policy.priority
                && ["queues", "all"].contains(actual["apply-to"]?.string ?? "all")
            return isSame
                ? nil : .error(check, "the policy \(policy.name) differs from the one of this release", cure: cure)
        }
        return findings.orOK(check, "\(Topology.policies.count) policies limit the age of dead letters")
    }

    // MARK: - Queues, exchanges and bindings

    /// The findings about types, arguments and bindings. Missing queues and exchanges are found over AMQP.
    func arguments(_ topology: Topology) -> [Finding] {
        let check = "topology-arguments"
        var findings: [Finding] = []
        let queues = Dictionary(entries("queues").map { ($0["name"]?.string ?? "", $0) }) { first, _ in first }
        for queue in topology.queues {
            guard let actual = queues[queue.name]?["arguments"]?.object else { continue }
            let different = queue.arguments.filter { actual[$0.key] != $0.value.json }.keys.sorted()
            guard !different.isEmpty else { continue }
            findings.append(
                .error(
                    check, "the queue \(queue.name) has another \(different.joined(separator: ", "))",
                    cure: "stop its stage, delete the empty queue, and run pushctl topology apply"))
        }
        let exchanges = Dictionary(entries("exchanges").map { ($0["name"]?.string ?? "", $0) }) { first, _ in first }
        for exchange in topology.exchanges {
            guard let kind = exchanges[exchange.name]?["type"]?.string, kind != exchange.kind.rawValue else { continue }
            findings.append(
                .error(
                    check, "the exchange \(exchange.name) is \(kind), expected is \(exchange.kind.rawValue)",
                    cure: "run pushctl topology apply"))
        }
        let missing = missingBindings(topology)
        if let first = missing.first {
            findings.append(
                .error(
                    check, "\(missing.count) bindings are missing, such as \(first)", cure: "run pushctl topology apply"
                ))
        }
        return findings.orOK(check, "types, arguments and \(topology.bindings.count) bindings are as declared")
    }

    private func missingBindings(_ topology: Topology) -> [String] {
        func key(_ source: String, _ destination: String, _ routingKey: String) -> String {
            "\(source) → \(destination) by “\(routingKey)”"
        }
        let actual = Set(
            entries("bindings").map {
                key($0["source"]?.string ?? "", $0["destination"]?.string ?? "", $0["routing_key"]?.string ?? "")
            })
        let expected =
            topology.bindings.map { key($0.exchange, $0.queue, $0.routingKey) }
            + topology.exchangeBindings.map { key($0.source, $0.destination, $0.routingKey) }
        return expected.filter { !actual.contains($0) }
    }
}
