import ArgumentParser
import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import DecisionLog
@testable import Pushctl

/// The commands that word an event: `send`, `trigger` and `test-device`.
@Suite struct SendCommandTests {
    func data(_ arguments: String...) throws -> JSONValue {
        try SendCommand.parse(["--app", "family-portal"] + arguments).data()
    }

    @Test func `every option becomes its member`() throws {
        let data = try data(
            "--user", "457", "--user", "458", "--title", "T", "--subtitle", "S", "--body", "{{b}}", "--badge", "0",
            "--sound", "default", "--image", "https://a.example/i.png", "--link", "app://1", "--data", #"{"a": [1]}"#,
            "--type", "chat", "--lane", "bulk", "--at", "2026-01-01T00:00:00Z", "--ttl", "60", "--collapse", "k",
            "--push-only")
        let expected: JSONValue = [
            "users": ["457", "458"], "type": "chat", "lane": "bulk", "at": "2026-01-01T00:00:00Z", "ttl": 60,
            "collapse": "k", "pushOnly": true,
            "content": [
                "title": "T", "subtitle": "S", "body": "{{b}}", "badge": 0, "sound": "default",
                "image": "https://a.example/i.png", "link": "app://1", "data": ["a": [1]],
            ],
        ]
        #expect(data == expected)
        #expect(throws: Never.self) { try DirectNotification(data) }
    }

    @Test func `options replace members of the file`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("n.json", #"{"tag": "beta", "content": {"title": "T", "body": "B"}, "ttl": 60}"#)
        #expect(
            try data("--file", file, "--body", "New", "--ttl", "90")
                == ["tag": "beta", "content": ["title": "T", "body": "New"], "ttl": 90])
        #expect(try data("--everyone", "--silent") == ["everyone": true, "silent": true, "content": [:]])
        let list = try folder.write("list.json", "[]")
        #expect(throws: CommandError.self) { try self.data("--file", list) }
        #expect(throws: CommandError.self) { try self.data("--user", "1", "--data", "{") }
    }

    @Test func `set replaces a value, creates objects, and takes JSON or a text`() throws {
        let data: JSONValue = ["message": ["text": "old", "id": 1], "users": [1]]
        func set(_ text: String) throws -> JSONValue { try TriggerCommand.replace(text, in: data) }
        #expect(try set("message.text=a=b")["message"] == ["text": "a=b", "id": 1])
        #expect(try set(#"users=["457"]"#)["users"] == ["457"])
        #expect(try set("message.id=2")["message"]?["id"] == 2)
        #expect(try set("room.name=x")["room"] == ["name": "x"])
        for wrong in ["text", "=1", "users.0=1"] { #expect(throws: CommandError.self) { try set(wrong) } }
    }

    @Test func `a test push is accepted by a provider, or the reason is named`() throws {
        let device = UUID()
        func outcome(_ disposition: String, _ device: UUID) -> Explanation.Outcome {
            .init(at: .distantPast, origin: "apns", device: device, disposition: disposition, reason: nil)
        }
        func failure(
            _ answer: String, _ outcomes: [Explanation.Outcome], device: UUID? = nil
        ) -> String? {
            explanation([("wanted", answer, outcomes)]).testFailure(device: device)
        }
        #expect(failure("push", [outcome("rejected", device), outcome("accepted", UUID())]) == nil)
        #expect(failure("push", [outcome("accepted", device)], device: device) == nil)
        #expect(failure("push", [outcome("rejected", device)]) == "no provider accepted it")
        #expect(
            failure("push", [outcome("accepted", UUID())], device: device)
                == "no provider has answered about this device")
        #expect(failure("push", []) == "no provider has answered")
        #expect(failure("inbox", [])?.hasPrefix("not pushed (wanted)") == true)
    }

    @Test func `an event is complete when each push has an outcome that the log keeps`() {
        let accepted = Explanation.Outcome(
            at: .distantPast, origin: "apns", device: nil, disposition: "accepted", reason: nil)
        #expect(explanation([("wanted", "push", [accepted]), ("capped", "inbox", [])]).isComplete)
        #expect(explanation([("audience", "push", [])]).isComplete)
        #expect(explanation([("scheduled", "hold", [])]).isComplete)
        #expect(!explanation([("wanted", "push", [accepted]), ("wanted", "push", [])]).isComplete)
    }

    /// An event with one notification for each reason, answer and outcomes.
    private func explanation(_ traces: [(String, String, [Explanation.Outcome])]) -> Explanation {
        Explanation(
            app: "a", source: "/s", id: "e", type: "t", arrivedAt: .distantPast, ruleSet: UUID(), fanOuts: [],
            traces: traces.map { reason, answer, outcomes in
                Explanation.NotificationTrace(
                    notification: UUID(), user: "1", rule: "direct",
                    decisions: [.init(at: .distantPast, answer: answer, reason: reason, until: nil)],
                    outcomes: outcomes, inbox: nil, dueAt: nil, receipts: [])
            }, next: nil)
    }
}
