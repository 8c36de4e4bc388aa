import PushProtocol
import Testing

@testable import Pushctl

@Suite struct QueueMembershipTests {
    private let topology = Topology(
        exchanges: [],
        queues: [
            .init(name: "work", arguments: ["x-queue-type": .text("quorum")]),
            .init(name: "log", arguments: ["x-queue-type": .text("stream")]),
        ], bindings: [])

    private func problems(_ json: String, members: Int = 3) throws -> [String] {
        try QueueMembership(json: Array(json.utf8)).problems(of: topology, members: members)
    }

    private static func row(_ name: String, members: [String], online: [String]) -> String {
        #"{"name":"\#(name)","members":\#(members),"online":\#(online)}"#
    }

    @Test func `queues with all members online have no problem, and unknown queues are ignored`() throws {
        let rows = ["work", "log"].map { Self.row($0, members: ["a", "b", "c"], online: ["c", "b", "a"]) }
        let other = #"{"name":"other","members":"","online":""}"#
        #expect(try problems("[\(rows[0]),\(rows[1]),\(other)]") == [])
    }

    @Test func `a queue with too few members is reported with the command for its type`() throws {
        let rows = ["work", "log"].map { Self.row($0, members: ["a"], online: ["a"]) }
        #expect(
            try problems("[\(rows[0]),\(rows[1])]") == [
                "the queue work has 1 of 3 members; run `rabbitmq-queues grow`",
                "the queue log has 1 of 3 members; run `rabbitmq-streams add_replica`",
            ])
        #expect(try problems("[\(rows[0]),\(rows[1])]", members: 1) == [])
    }

    @Test func `a member that does not run and a missing queue are reported`() throws {
        let row = Self.row("work", members: ["a", "b", "c"], online: ["a", "c"])
        #expect(
            try problems("[\(row)]") == [
                "the queue work has a member that does not run, on b", "the queue log is not in the list",
            ])
    }

    @Test(arguments: ["", "{}", #"[{"name":"work"}]"#, #"[{"name":"work","members":["a"]}]"#])
    func `another document is an error with the command`(json: String) {
        let error = #expect(throws: CommandError.self) { _ = try QueueMembership(json: Array(json.utf8)) }
        #expect(error.map { "\($0)" }?.contains(QueueMembership.listCommand) == true)
    }
}
