import PushProtocol
import Testing

@testable import Pushctl

/// Both Google topic APIs (ProviderFacts.md §B.9), and the vectors G18 and G19.
@Suite struct TopicSubscriptionTests {
    private let subscribe = TopicSubscription(change: .subscribe, topic: "news~1")
    private let unsubscribe = TopicSubscription(change: .unsubscribe, topic: "a%b")
    private let token = DeviceToken(secret: "x:A/b?c")

    private func body(_ status: String) -> [UInt8] { Array(#"{"error":{"status":"\#(status)"}}"#.utf8) }

    @Test func `v1 sends one request per registration with a percent-encoded path`() {
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

    @Test func `the legacy API takes many tokens`() {
        let request = subscribe.legacyRequest(for: [token, DeviceToken(secret: "t")], at: "https://h")
        #expect(request.method == "POST" && request.url == "https://h/iid/v1:batchAdd")
        #expect(request.headers["access_token_auth"] == "true")
        #expect(
            String(decoding: request.body, as: UTF8.self)
                == #"{"registration_tokens":["x:A/b?c","t"],"to":"/topics/news~1"}"#)
        #expect(unsubscribe.legacyRequest(for: [token], at: "https://h").url == "https://h/iid/v1:batchRemove")
    }

    @Test func `G18: legacy results keep the tokens' order`() {
        let body = Array(#"{"results":[{},{"error":"NOT_FOUND"}]}"#.utf8)
        #expect(subscribe.legacyAnswers(status: 200, body: body, count: 2) == [.done, .unregistered])
        // A response with the wrong number of results is assigned to no token.
        #expect(
            subscribe.legacyAnswers(status: 200, body: body, count: 3)
                == Array(repeating: .retryable("HTTP 200"), count: 3)
        )
    }

    @Test func `G19: an existing subscription counts as success`() {
        #expect(subscribe.answer(status: 409, body: body("ALREADY_EXISTS")) == .done)
        #expect(subscribe.answer(status: 200, body: Array("{}".utf8)) == .done)
    }

    @Test(
        arguments: [
            ("NOT_FOUND", .unregistered), ("INVALID_ARGUMENT", .refused("INVALID_ARGUMENT")),
            ("TOO_MANY_TOPICS", .refused("TOO_MANY_TOPICS")), ("RESOURCE_EXHAUSTED", .retryable("RESOURCE_EXHAUSTED")),
            ("PERMISSION_DENIED", .misconfigured("PERMISSION_DENIED")), ("INTERNAL", .retryable("INTERNAL")),
            ("DEADLINE_EXCEEDED", .retryable("DEADLINE_EXCEEDED")), ("UNKNOWN", .retryable("UNKNOWN")),
        ] as [(String, TopicSubscription.SubscriptionResult)])
    func `error codes mean the same in both APIs`(word: String, answer: TopicSubscription.SubscriptionResult) {
        #expect(subscribe.answer(status: 404, body: body(word)) == answer)
        let results = Array(#"{"results":[{"error":"\#(word)"}]}"#.utf8)
        #expect(subscribe.legacyAnswers(status: 200, body: results, count: 1) == [answer])
    }

    @Test func `a response outside the API is a misconfiguration or retryable`() {
        #expect(subscribe.answer(status: 404, body: Array("<html>".utf8)) == .misconfigured("HTTP 404"))
        #expect(subscribe.answer(status: 401, body: []) == .misconfigured("HTTP 401"))
        #expect(subscribe.answer(status: 502, body: []) == .retryable("HTTP 502"))
        #expect(
            subscribe.legacyAnswers(status: 403, body: Array(#"{"error":"no"}"#.utf8), count: 1) == [
                .misconfigured("no")
            ])
        #expect(subscribe.legacyAnswers(status: 503, body: [], count: 1) == [.retryable("HTTP 503")])
    }

    @Test func `the report names registrations by line`() {
        let report = TopicReport([.done, .unregistered, .done, .unregistered, .refused("TOO_MANY_TOPICS")])
        #expect(!report.isComplete)
        #expect(
            report.text == """
                2 of 5 done
                1 refused (TOO_MANY_TOPICS): registration 5
                2 unregistered (the registration no longer exists): registration 2, 4
                """)
        #expect(TopicReport([.done]) == TopicReport([.done]) && TopicReport([.done]).isComplete)
    }
}
