import PushProtocol
import Testing
@testable import Pushctl

/// Both of Google's topic APIs (`push-protocols` B.9), and the vectors G18 and G19.
@Suite struct TopicSubscriptionTests {
    private let subscribe = TopicSubscription(change: .subscribe, topic: "news~1")
    private let unsubscribe = TopicSubscription(change: .unsubscribe, topic: "a%b")
    private let token = DeviceToken(secret: "x:A/b?c")

    private func body(_ status: String) -> [UInt8] { Array(#"{"error":{"status":"\#(status)"}}"#.utf8) }

    @Test func `v1 asks for each registration, its path percent-encoded`() {
        #expect(
            subscribe.request(for: token, in: "p", at: "https://h")
                == .init(
                    method: "POST",
                    url: "https://h/v1/projects/p/registrations/x%3AA%2Fb%3Fc/topicSubscriptions?topic_name=news~1",
                    headers: ["content-type": "application/json"], body: Array("{}".utf8)))
        #expect(
            unsubscribe.request(for: token, in: "p", at: "https://h")
                == .init(
                    method: "DELETE",
                    url:
                        "https://h/v1/projects/p/registrations/x%3AA%2Fb%3Fc/topicSubscriptions/a%25b?allow_missing=true"
                ))
    }

    @Test func `the legacy API takes many at once`() {
        let request = subscribe.legacyRequest(for: [token, DeviceToken(secret: "t")], at: "https://h")
        #expect(request.method == "POST" && request.url == "https://h/iid/v1:batchAdd")
        #expect(request.headers["access_token_auth"] == "true")
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"registration_tokens":["x:A/b?c","t"],"to":"/topics/news~1"}"#)
        #expect(unsubscribe.legacyRequest(for: [token], at: "https://h").url == "https://h/iid/v1:batchRemove")
    }

    @Test func `G18: the legacy API's answers come in the tokens' order`() {
        let body = Array(#"{"results":[{},{"error":"NOT_FOUND"}]}"#.utf8)
        #expect(subscribe.legacyAnswers(status: 200, body: body, count: 2) == [.done, .gone])
        // An answer that does not fit is nobody's.
        #expect(
            subscribe.legacyAnswers(status: 200, body: body, count: 3) == Array(repeating: .later("HTTP 200"), count: 3)
        )
    }

    @Test func `G19: who is subscribed already is subscribed`() {
        #expect(subscribe.answer(status: 409, body: body("ALREADY_EXISTS")) == .done)
        #expect(subscribe.answer(status: 200, body: Array("{}".utf8)) == .done)
    }

    @Test(
        arguments: [
            ("NOT_FOUND", .gone), ("INVALID_ARGUMENT", .refused("INVALID_ARGUMENT")),
            ("TOO_MANY_TOPICS", .refused("TOO_MANY_TOPICS")), ("RESOURCE_EXHAUSTED", .later("RESOURCE_EXHAUSTED")),
            ("PERMISSION_DENIED", .halted("PERMISSION_DENIED")), ("INTERNAL", .later("INTERNAL")),
            ("DEADLINE_EXCEEDED", .later("DEADLINE_EXCEEDED")), ("UNKNOWN", .later("UNKNOWN")),
        ] as [(String, TopicSubscription.Answer)])
    func `a word means the same over both`(word: String, answer: TopicSubscription.Answer) {
        #expect(subscribe.answer(status: 404, body: body(word)) == answer)
        let results = Array(#"{"results":[{"error":"\#(word)"}]}"#.utf8)
        #expect(subscribe.legacyAnswers(status: 200, body: results, count: 1) == [answer])
    }

    @Test func `what is no answer of the API is our fault or passes`() {
        #expect(subscribe.answer(status: 404, body: Array("<html>".utf8)) == .halted("HTTP 404"))
        #expect(subscribe.answer(status: 401, body: []) == .halted("HTTP 401"))
        #expect(subscribe.answer(status: 502, body: []) == .later("HTTP 502"))
        #expect(
            subscribe.legacyAnswers(status: 403, body: Array(#"{"error":"no"}"#.utf8), count: 1) == [.halted("no")])
        #expect(subscribe.legacyAnswers(status: 503, body: [], count: 1) == [.later("HTTP 503")])
    }

    @Test func `the report tells registrations by their places`() {
        let report = TopicReport([.done, .gone, .done, .gone, .refused("TOO_MANY_TOPICS")])
        #expect(!report.isComplete)
        #expect(
            report.text == """
                2 of 5 done
                2 gone (the registration does not exist any more): registration 2, 4
                1 refused (TOO_MANY_TOPICS): registration 5
                """)
        #expect(TopicReport([.done]) == TopicReport([.done]) && TopicReport([.done]).isComplete)
    }
}
