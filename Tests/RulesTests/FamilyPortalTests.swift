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
