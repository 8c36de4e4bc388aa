internal import AMQP
internal import PushProtocol

/// The traces of a message with several causes, such as the outcomes of several pushes: one is its parent, and the
/// header ``HeaderName/traceLinks`` lists the sampled others.
enum TraceLinks {
    /// The most links of a message: 1.8 KB of headers.
    static let maximum = 32

    /// The headers of a message that the messages of `spans` cause together.
    static func headers(of spans: [MessageSpan]) -> [String: AMQPValue] {
        guard let parent = spans.first(where: \.isSampled) ?? spans.first else { return [:] }
        var headers = parent.headers.mapValues(AMQPValue.text)
        let links = spans.lazy.filter { $0 !== parent && $0.isSampled }.prefix(maximum).compactMap(\.traceparent)
        if !links.isEmpty { headers[HeaderName.traceLinks] = .text(links.joined(separator: ",")) }
        return headers
    }

    static func traceparents(in headers: [String: AMQPValue]) -> [String] {
        guard let text = headers[HeaderName.traceLinks]?.text else { return [] }
        return text.split(separator: ",").prefix(maximum).map(String.init)
    }
}
