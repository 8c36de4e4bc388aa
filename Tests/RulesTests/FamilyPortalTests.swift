import Foundation
import PushProtocol
import RuleEngine
import Testing

@testable import RuleLanguage
@testable import Rules

/// The requirements document of the family portal, row by row.
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

    @Test func `a new message notifies all chat members but the sender`() throws {
        let drafts = try rules.evaluate(message())
        #expect(drafts.map(\.users) == [["457", "458"]])
        #expect(drafts.first?.lane == .interactive)
    }

    @Test func `the payload equals the document's`() throws {
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

    @Test func `a thread id keeps its JSON type`() throws {
        #expect(try rules.evaluate(message(thread: 7)).first?.content.data?["thread_id"] == 7)
        #expect(try rules.evaluate(message(thread: "t-7")).first?.content.data?["thread_id"] == "t-7")
    }

    @Test func `a message expires after a day`() throws {
        let now = Timestamp(milliseconds: 1_000_000)
        let sent = try #require(try rules.evaluate(message(), arrivedAt: now).first).messages
        #expect(sent.map(\.expiresAt) == [now + .seconds(86400)])
    }

    @Test func `a long message is cut between grapheme clusters`() throws {
        let text = String(repeating: "👨‍👩‍👧", count: 400)
        let body = try #require(try rules.evaluate(message(text)).first?.content.body)
        #expect(body == "Pat: " + String(repeating: "👨‍👩‍👧", count: 119) + "…")
    }

    @Test(arguments: ["https://img.example/3.jpg", nil] as [JSONValue])
    func `new photos show the album's cover, and are grouped by album`(cover: JSONValue) throws {
        let added = event(
            "photos.added",
            [
                "album": ["id": 3, "name": "Summer", "cover": cover], "count": 2, "sender": ["id": 1, "name": "Pat"],
                "family": ["id": 7, "members": [1, 2]],
            ])
        let content = try #require(try rules.evaluate(added).first).content
        #expect(content.image == cover.string)
        #expect(content.thread == "album/3")
    }

    @Test func `a chat without other members sends nothing`() throws {
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
    func `no character of a user's text is interpreted`(text: String) throws {
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

/// The optional and future parts of the portal's document: presence, and mutes of threads and families.
@Suite(.timeLimit(.minutes(4))) struct FamilyPortalPeopleTests {
    let message =
        #"{"message":{"id":1,"text":"Hi","thread_id":9},"sender":{"id":456,"name":"Pat"},"participants":[456,457,458],"family":{"id":7}}"#

    @Test func `a connected and active user is not pushed`() async throws {
        try await Product.run("family-portal") { (product: Product) async throws in
            let user = #"{"user":{"id":457,"connection":"web-1"}}"#
            #expect(try await product.handleEvent("chat.connection.active", user).isEmpty)
            #expect(
                try await product.handleEvent("chat.message.created", message).flatMap(\.recipients).map(
                    \.user.rawValue)
                    == ["458"])
            #expect(try await product.handleEvent("chat.connection.closed", user).isEmpty)
            #expect(
                try await product.handleEvent("chat.message.created", message).flatMap(\.recipients).map(
                    \.user.rawValue)
                    == ["457", "458"])
        }
    }

    @Test func `a message can be muted by family, by thread or by type`() throws {
        let rules = try Shipped.ruleSet("family-portal")
        let drafts = try rules.evaluate(event("chat.message.created", try json(message)))
        #expect(drafts.map(\.mutes) == [["family/7", "thread/9"]])
        #expect(drafts.map(\.policy.type) == ["chat"])
    }
}
