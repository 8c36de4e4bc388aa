@testable import PushProtocol

extension FuzzTarget {
    /// A line with the routing key, a line with the content type, header lines, an empty line, and the body.
    static let cloudEvent = FuzzTarget("cloud-event") {
        let body =
            #"{"specversion":"1.0","id":"e1","source":"/chat","type":"chat.message.created","#
            + #""subject":"s","time":"2026-01-01T00:00:00Z","expirytime":"2026-01-01T00:00:01.5Z","data":{"n":[1]}}"#
        let key = "family-portal.chat.message.created\n"
        return [
            key + "application/cloudevents+json\ntraceparent: 00-aa-bb-01\n\n" + body,
            key + "application/json\ncloudEvents_specversion: 1.0\ncloudEvents_id: e1\ncloudEvents_source: /chat\n"
                + "cloudEvents:type: t\ncloudEvents:time: 2026-01-01T00:00:00+01:00\n\n{\"a\":1}",
        ].map { Array($0.utf8) }
    } read: { input in
        var input = FuzzInput(input)
        let routingKey = input.textLine()
        let contentType = input.textLine()
        let headers = Dictionary(input.fields().map { ($0.name, $0.value) }) { $1 }
        let event = try CloudEvents.decode(
            routingKey: routingKey, contentType: contentType.isEmpty ? nil : contentType, headers: headers,
            body: Array(input.rest))
        for moment in [event.time, event.expiresAt] { _ = moment.map { Timestamp($0).seconds } }
        require(event.data.depth <= CloudEvents.maximumDataDepth, "the data is nested too deep")
    }

    /// Times, conditions and other short texts of messages and headers.
    static let texts = FuzzTarget("texts") {
        [
            "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+05:30", "Wed, 21 Oct 2026 07:28:00 GMT", "120",
            "'a' in topics && ('b' in topics || !('c' in topics))", "amqps://u:p%40@[::1]:5671,b/vh%2F1", "1.2.3-b4",
            "550e8400-e29b-41d4-a716-446655440000",
        ].map { Array($0.utf8) }
    } read: { input in
        try readTexts(String(decoding: input, as: UTF8.self))
    }
}
