import PushProtocol

/// The content modes of the CloudEvents HTTP protocol binding 1.0.2 (§3).
enum ContentMode: String, Hashable, Sendable {
    case structured, binary, batch

    static let batchContentType = "application/cloudevents-batch+json"

    /// Selects the mode of a request.
    ///
    /// - Parameter hasAttributes: whether the request has a header `ce-…`.
    init(contentType: String?, hasAttributes: Bool) throws(EventRefusal) {
        let media = MediaType(contentType)
        switch media.name {
        case CloudEvents.structuredContentType: self = .structured
        case Self.batchContentType: self = .batch
        default:
            guard !media.name.hasPrefix("application/cloudevents") else {
                throw EventRefusal(
                    status: 415, message: "CloudEvents are accepted as JSON only: \(Self.acceptedTypes)")
            }
            guard hasAttributes else {
                throw EventRefusal(
                    status: 415,
                    message: "the request holds no CloudEvent: send Content-Type \(Self.acceptedTypes), or the "
                        + "attributes as headers ce-specversion, ce-id, ce-source and ce-type")
            }
            guard media.isJSON else {
                throw EventRefusal(
                    status: 415, message: "the event's data must be JSON; send Content-Type: application/json")
            }
            self = .binary
        }
        guard media.charset.map({ ["utf-8", "utf8", "us-ascii"].contains($0) }) ?? true else {
            throw EventRefusal(status: 415, message: "the body must be UTF-8; remove the charset, or send utf-8")
        }
    }

    private static let acceptedTypes = "\(CloudEvents.structuredContentType) or \(batchContentType)"
}

/// The parts of a `Content-Type` that select a content mode, in lower case.
private struct MediaType {
    var name: String
    var charset: String?

    init(_ text: String?) {
        let parts = (text ?? "").split(separator: ";", omittingEmptySubsequences: false).map { part in
            part.filter { $0 != " " && $0 != "\t" }.lowercased()
        }
        name = parts.first ?? ""
        charset = parts.dropFirst().first { $0.hasPrefix("charset=") }?.dropFirst("charset=".count).filter {
            $0 != "\""
        }
    }

    /// Whether the data is JSON; data without a type is taken as JSON.
    var isJSON: Bool { name.isEmpty || name == "application/json" || name == "text/json" || name.hasSuffix("+json") }
}
