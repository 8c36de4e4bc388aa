import PushProtocol

/// The members of the broker's queues, as `rabbitmqctl list_queues` prints them. AMQP cannot query members.
struct QueueMembership {
    private struct Members {
        let all: Set<String>
        let online: Set<String>
    }

    private let queues: [String: Members]

    /// Parses the output of `rabbitmqctl -q list_queues -p heliograph --formatter json name members online`.
    init(json: [UInt8]) throws {
        guard let rows = try? WireCoding.decode(JSONValue.self, from: json).array else {
            throw CommandError("the list of queues is no JSON array; run \(Self.listCommand)")
        }
        var queues: [String: Members] = [:]
        for row in rows {
            guard let name = row["name"]?.string, let all = Self.nodes(row["members"]),
                let online = Self.nodes(row["online"])
            else { throw CommandError("a row of the list of queues lacks a column; run \(Self.listCommand)") }
            queues[name] = Members(all: all, online: online)
        }
        self.queues = queues
    }

    static let listCommand = "rabbitmqctl -q list_queues -p heliograph --formatter json name members online"

    /// A classic queue has no members; rabbitmqctl prints an empty text for it.
    private static func nodes(_ value: JSONValue?) -> Set<String>? {
        if value == .string("") { return [] }
        return value?.array.map { Set($0.compactMap(\.string)) }
    }

    /// One line for each queue of `topology` with fewer than `count` members, or with members that do not run.
    func problems(of topology: Topology, members count: Int) -> [String] {
        topology.queues.compactMap { queue in
            guard let members = queues[queue.name] else { return "the queue \(queue.name) is not in the list" }
            if members.all.count < count {
                let isStream = queue.arguments["x-queue-type"] == .text("stream")
                let command = isStream ? "rabbitmq-streams add_replica" : "rabbitmq-queues grow"
                return "the queue \(queue.name) has \(members.all.count) of \(count) members; run `\(command)`"
            }
            let offline = members.all.subtracting(members.online).sorted()
            guard offline.isEmpty else {
                return "the queue \(queue.name) has a member that does not run, on \(offline.joined(separator: ", "))"
            }
            return nil
        }
    }
}
