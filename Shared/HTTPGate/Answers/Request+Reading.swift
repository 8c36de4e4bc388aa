package import Hummingbird
import HTTPTypes
import NIOCore

extension Request {
    /// The credentials of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme's case does not matter).
    package var bearerToken: String? {
        guard let header = headers[.authorization], header.count > 7, header.prefix(7).lowercased() == "bearer " else {
            return nil
        }
        return String(header.dropFirst(7))
    }

    /// Refuses a body that says that it is something else. One that does not say is looked at.
    ///
    /// - Parameter other: another media type that is taken for JSON.
    private func checkIsJSON(or other: String? = nil) throws(APIRefusal) {
        guard let type = headers[.contentType] else { return }
        let media = type.prefix { $0 != ";" }.trimmingSuffix(while: \.isWhitespace)
        guard media.lowercased() == "application/json" || media.lowercased() == other else {
            throw APIRefusal(
                status: .unsupportedMediaType, message: "the body has to be JSON; send Content-Type: application/json")
        }
    }

    /// The whole body, if it is JSON of at most that many bytes.
    ///
    /// - Parameter other: another media type that is taken for JSON.
    package func json(upTo limit: Int, or other: String? = nil) async throws(APIRefusal) -> [UInt8] {
        try checkIsJSON(or: other)
        do {
            return Array(try await body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw APIRefusal(status: .contentTooLarge, message: "the body is larger than \(limit) bytes")
        } catch {
            throw APIRefusal(status: .badRequest, message: "the body ended before it was whole; send it again")
        }
    }
}

extension Substring {
    fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
        var text = self
        while let last = text.last, predicate(last) { text.removeLast() }
        return text
    }
}
