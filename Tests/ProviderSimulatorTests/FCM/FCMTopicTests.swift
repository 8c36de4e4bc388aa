import PushProtocol
import Testing

@testable import ProviderSimulator

/// Both topic APIs (ProviderFacts.md §B.9), and delivery to topics and conditions.
@Suite struct FCMTopicTests {
    static func ask(
        _ simulator: Simulator, _ method: String, _ path: String, _ body: String = "", authorized: Bool = true
    ) -> ReceivedResponse? {
        let token = simulator.state.accessTokens.issue(project: Fixture.project, lifetime: 3600, at: Fixture.now)
        var headers = [Header("access_token_auth", "true")]
        if authorized { headers.append(Header("authorization", "Bearer \(token)")) }
        return ReceivedResponse(
            simulator.respondGoogle(Fixture.google(path, Array(body.utf8), headers: headers, method: method)))
    }

    static func batch(_ simulator: Simulator, _ verb: String, _ tokens: String, to: String = "/topics/news")
        -> ReceivedResponse?
    {
        ask(simulator, "POST", "/iid/v1:batch\(verb)", #"{"to":"\#(to)","registration_tokens":[\#(tokens)]}"#)
    }

    @Test func `batch results keep their order, and a topic message reaches its subscribers`() throws {
        let simulator = Fixture.simulator()
        let answer = Self.batch(simulator, "Add", #""a","sim:UNREGISTERED","b",3"#)
        #expect(answer?.body == ["results": [[:], ["error": "NOT_FOUND"], [:], ["error": "INVALID_ARGUMENT"]]])
        #expect(simulator.send(["topic": "news", "notification": ["title": "T"]])?.status == 200)
        let phones = simulator.wall.changes(after: 0, limit: 10).phones
        #expect(Set(phones.map(\.id.token)) == ["a", "b"])
        #expect(Self.batch(simulator, "Remove", #""a""#)?.body == ["results": [[:]]])
        #expect(simulator.state.topics.subscribers(of: "news", of: Fixture.project) == ["b"])
    }

    @Test(arguments: [
        ("'news' in topics", "a ab"), ("'news' in topics && 'sport' in topics", "ab"),
        ("'news' in topics || 'sport' in topics", "a ab b"), ("!('news' in topics)", "b gone"),
        ("!!'sport' in topics && !('news' in topics)", "b"),
        ("'sport' in topics && ('news' in topics || 'else' in topics)", "ab"),
        // Left-associative, whatever the operator.
        ("'news' in topics || 'sport' in topics && 'sport' in topics", "ab b"), ("'else' in topics", ""),
    ]) func `a message with a condition reaches the matching phones`(
        condition: String, tokens: String
    ) throws {
        let simulator = Fixture.simulator()
        _ = Self.batch(simulator, "Add", #""ab","a","gone""#)
        _ = Self.batch(simulator, "Add", #""ab","b""#, to: "/topics/sport")
        _ = Self.batch(simulator, "Remove", #""gone""#)
        #expect(simulator.send(["condition": .string(condition), "notification": ["title": "T"]])?.status == 200)
        let rung = simulator.wall.changes(after: 0, limit: 10).phones.map(\.id.token)
        #expect(rung.sorted().joined(separator: " ") == tokens)
    }

    @Test func `an invalid batch call gets a plain error string`() {
        let simulator = Fixture.simulator()
        #expect(Self.batch(simulator, "Add", "")?.body == ["error": "InvalidRequest"])
        #expect(Self.batch(simulator, "Add", #""a""#, to: "news")?.status == 400)
        let thousand = (1...1001).map { "\"t\($0)\"" }.joined(separator: ",")
        #expect(Self.batch(simulator, "Add", thousand)?.status == 400)
        #expect(Self.ask(simulator, "POST", "/iid/v1:batchAdd", "{}", authorized: false)?.status == 401)
    }

    @Test func `v1: a repeated subscribe is 409, a repeated unsubscribe 404 unless allow_missing is set`() {
        let simulator = Fixture.simulator()
        let base = "/v1/projects/\(Fixture.project)/registrations/tok%3A1/topicSubscriptions"
        #expect(Self.ask(simulator, "POST", base + "?topic_name=news", "{}")?.status == 200)
        #expect(simulator.state.topics.subscribers(of: "news", of: Fixture.project) == ["tok:1"])
        let again = Self.ask(simulator, "POST", base + "?topic_name=news", "{}")
        #expect(again?.status == 409 && again?.body?["error"]?["status"] == "ALREADY_EXISTS")
        #expect(Self.ask(simulator, "PATCH", base + "/news?allow_missing=true", "{}")?.status == 200)
        #expect(Self.ask(simulator, "DELETE", base + "/news")?.status == 200)
        #expect(Self.ask(simulator, "DELETE", base + "/news")?.status == 404)
        #expect(Self.ask(simulator, "DELETE", base + "/news?allow_missing=true")?.status == 200)
        #expect(Self.ask(simulator, "POST", base + "?topic_name=a%20b", "{}")?.status == 400)
        let other = base.replacing(Fixture.project, with: "other-project")
        #expect(Self.ask(simulator, "POST", other + "?topic_name=news", "{}")?.status == 403)
    }

    @Test(arguments: ["?=", "?", "?&&", "?=news", "?topic_name", "?topic_name=", "?%ff=%ff"])
    func `a query without a topic is rejected`(_ query: String) {
        let base = "/v1/projects/\(Fixture.project)/registrations/t/topicSubscriptions"
        #expect(Self.ask(Fixture.simulator(), "POST", base + query, "{}")?.status == 400)
    }

    @Test func `a message reaches all subscribers, even more than the wall shows`() throws {
        let simulator = Fixture.simulator()
        let tokens = (0..<25).map { "t\($0)" }
        _ = Self.batch(simulator, "Add", tokens.map { "\"\($0)\"" }.joined(separator: ","))
        #expect(simulator.send(["topic": "news", "notification": ["title": "T"]])?.status == 200)
        var rung: [String] = []
        var last = 0
        while case let changes = simulator.wall.changes(after: last, limit: 10), !changes.phones.isEmpty {
            rung += changes.phones.map(\.id.token)
            last = changes.last
        }
        #expect(rung.sorted() == tokens.sorted())
    }

    @Test func `an app instance has at most 2000 topics`() {
        let topics = TopicSubscribers()
        for index in 0..<2000 { #expect(topics.subscribe("a", to: "t\(index)", of: "p") == .done) }
        #expect(topics.subscribe("a", to: "one-more", of: "p") == .tooMany)
        #expect(topics.unsubscribe("a", from: "t0", of: "p") == .done)
        #expect(topics.subscribe("a", to: "one-more", of: "p") == .done)
    }
}
