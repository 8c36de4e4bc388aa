import Foundation
import PushProtocol
import Testing

@testable import Rules

/// The family portal's document, row by row.
@Suite struct FamilyPortalTests {
    let rules: RuleSet

    init() throws { rules = try Shipped.ruleSet("family-portal") }

    func message(_ text: String = "Hi", thread: JSONValue = nil) -> DomainEvent {
        event(
            "chat.message.created",
            [
                "message": ["id": 123, "text": .string(text), "thread_id": thread],
                "sender": ["id": 456, "name": "Pat"], "participants": [456, 457, "458"],
            ])
    }

    @Test func `everyone in the chat but the sender hears of a new message`() throws {
        let drafts = try rules.evaluate(message())
        #expect(drafts.map(\.users) == [["457", "458"]])
        #expect(drafts.first?.lane == .interactive)
    }

    @Test func `the payload is the document's`() throws {
        let draft = try #require(try rules.evaluate(message()).first)
        #expect(
            draft.content
                == Content(
                    title: "New message", body: "Pat: Hi", badge: 1, sound: "default", category: "chat_message",
                    data: [
                        "type": "chat_message", "message_id": 123, "sender_id": 456, "sender_name": "Pat",
                        "thread_id": nil,
                    ]))
    }

    @Test func `a thread keeps its type`() throws {
        #expect(try rules.evaluate(message(thread: 7)).first?.content.data?["thread_id"] == 7)
        #expect(try rules.evaluate(message(thread: "t-7")).first?.content.data?["thread_id"] == "t-7")
    }

    @Test func `a message is worth a day`() throws {
        let now = Timestamp(milliseconds: 1_000_000)
        let draft = try #require(try rules.evaluate(message()).first)
        let sent = draft.notifications(about: message(), arrivedAt: now)
        #expect(sent.map(\.expiresAt) == [now + .seconds(86400)])
    }

    @Test func `a long message is cut where a person would not mind`() throws {
        let text = String(repeating: "👨‍👩‍👧", count: 400)
        let body = try #require(try rules.evaluate(message(text)).first?.content.body)
        #expect(body == "Pat: " + String(repeating: "👨‍👩‍👧", count: 119) + "…")
    }

    @Test func `a sender alone in a chat tells nobody`() throws {
        let lonely = event(
            "chat.message.created",
            [
                "message": ["id": 1, "text": "Echo", "thread_id": nil], "sender": ["id": "456", "name": "Pat"],
                "participants": [456],
            ])
        #expect(try rules.evaluate(lonely) == [])
    }

    @Test(arguments: [
        "{{name}}", "'; DROP TABLE rules.event; --", "<b>&amp;</b>", #"\"quoted\" \n"#, "{{#a}}", "$1 %s",
    ])
    func `no character of a person's text means anything`(text: String) throws {
        let hostile = event(
            "chat.message.created",
            [
                "message": ["id": .string(text), "text": .string(text), "thread_id": .string(text)],
                "sender": ["id": 1, "name": .string(text)], "participants": [.string(text)],
            ])
        let draft = try #require(try rules.evaluate(hostile).first)
        #expect(draft.users == [text])
        #expect(draft.content.body == "\(text): \(text)")
        #expect(
            draft.content.data == [
                "type": "chat_message", "message_id": .string(text), "sender_id": 1, "sender_name": .string(text),
                "thread_id": .string(text),
            ])
    }
}

/// What the portal's document calls optional and future: who is active is not pushed, threads and families are muted.
@Suite(.timeLimit(.minutes(4))) struct FamilyPortalPeopleTests {
    let message =
        #"{"message":{"id":1,"text":"Hi","thread_id":9},"sender":{"id":456,"name":"Pat"},"participants":[456,457,458],"family":{"id":7}}"#

    @Test func `who is connected and active is not pushed`() async throws {
        try await Product.run("family-portal") { (product: Product) async throws in
            let user = #"{"user":{"id":457,"connection":"web-1"}}"#
            #expect(try await product.happen("chat.connection.active", user).isEmpty)
            #expect(
                try await product.happen("chat.message.created", message).flatMap(\.recipients).map(\.user.rawValue)
                    == ["458"])
            #expect(try await product.happen("chat.connection.closed", user).isEmpty)
            #expect(
                try await product.happen("chat.message.created", message).flatMap(\.recipients).map(\.user.rawValue)
                    == ["457", "458"])
        }
    }

    @Test func `a message can be muted by its family and by its thread, or by its type`() throws {
        let rules = try Shipped.ruleSet("family-portal")
        let drafts = try rules.evaluate(event("chat.message.created", try json(message)))
        #expect(drafts.map(\.mutes) == [["family/7", "thread/9"]])
        #expect(drafts.map(\.policy.type) == ["chat"])
    }
}
