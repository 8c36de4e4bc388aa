package import FoundationEssentials

/// A provider's id for an accepted message, encoded as a string. APNs ids are UUIDs and stored as such: nearly every
/// outcome has one, and strings would allocate.
package struct ProviderMessageID: Hashable, Sendable {
    private enum Form: Hashable, Sendable {
        /// Encoded in lower case.
        case id(UUID)
        /// Any other id.
        case text(String)
    }

    private let form: Form

    /// The id whose text is the canonical form of `id` in lower case.
    package init(_ id: UUID) { form = .id(id) }

    package init(_ text: String) { form = Hexadecimal.lowercaseUUID(text).map(Form.id) ?? .text(text) }

    /// The id as a UUID; `nil` for any text other than a lower-case UUID.
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

extension ProviderMessageID: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}
