package import FoundationEssentials

/// What a provider calls something that it took. APNs' names are ids, which are held as such: nearly every outcome has one,
/// and a text of its own for each would cost more than all else about it. On the wire it is a text.
package struct ProviderName: Hashable, Sendable {
    private enum Form: Hashable, Sendable {
        /// Written in lower case.
        case id(UUID)
        /// Any other text.
        case text(String)
    }

    private let form: Form

    /// The name that is `id` in its canonical form, in lower case.
    package init(_ id: UUID) { form = .id(id) }

    package init(_ text: String) { form = Hexadecimal.lowerCaseID(text).map(Form.id) ?? .text(text) }

    /// `nil` for a name that is another text than an id in lower case.
    package var id: UUID? {
        switch form {
        case .id(let id): id
        case .text: nil
        }
    }

    package var text: String {
        switch form {
        case .id(let id): Hexadecimal.text(of: id)
        case .text(let text): text
        }
    }
}

extension ProviderName: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}

extension ProviderName: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
