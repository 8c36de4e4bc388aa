/// A push's content: a value, or the text that it came as and that few look into.
enum PushContent: Sendable {
    case value(Box)
    case text(ContentText)

    /// So that a push is as quickly copied with a value as with a text.
    final class Box: Sendable {
        let content: Content

        init(_ content: Content) { self.content = content }
    }

    init(_ content: Content) { self = .value(Box(content)) }

    var content: Content {
        switch self {
        case .value(let box): box.content
        case .text(let text): text.content
        }
    }
}

extension PushContent: Hashable {
    static func == (a: PushContent, b: PushContent) -> Bool { a.content == b.content }

    func hash(into hasher: inout Hasher) { hasher.combine(content) }
}

extension PushContent: Codable {
    init(from decoder: any Decoder) throws { self.init(try Content(from: decoder)) }

    func encode(to encoder: any Encoder) throws { try content.encode(to: encoder) }
}
