/// A push's content, decoded or still encoded.
enum PushContent: Sendable {
    case decoded(ContentBox)
    case encoded(EncodedContent)

    /// A class, so copying a push does not copy the content.
    final class ContentBox: Sendable {
        let content: Content

        init(_ content: Content) { self.content = content }
    }

    init(_ content: Content) { self = .decoded(ContentBox(content)) }

    var content: Content {
        switch self {
        case .decoded(let box): box.content
        case .encoded(let text): text.content
        }
    }
}

extension PushContent: Hashable {
    static func == (a: PushContent, b: PushContent) -> Bool { a.content == b.content }

    func hash(into hasher: inout Hasher) { hasher.combine(content) }
}
