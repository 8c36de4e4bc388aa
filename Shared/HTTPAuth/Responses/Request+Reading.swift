package import Hummingbird
import HTTPTypes
import NIOCore

extension Request {
    /// The credentials of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme is case-insensitive).
    package var bearerToken: String? {
        guard let header = headers[.authorization], header.count > 7, header.prefix(7).lowercased() == "bearer " else {
            return nil
        }
        return String(header.dropFirst(7))
    }

    /// Rejects a `Content-Type` other than JSON. A body without one is accepted.
    ///
    /// - Parameter other: another media type accepted as JSON.
    package func checkIsJSON(or other: String? = nil) throws(APIError) {
        guard let type = headers[.contentType] else { return }
        let media = type.prefix { $0 != ";" }.trimmingSuffix(while: \.isWhitespace)
        guard media.lowercased() == "application/json" || media.lowercased() == other else {
            throw APIError(
                status: .unsupportedMediaType, message: "the body must be JSON; send Content-Type: application/json")
        }
    }

    /// Reads a JSON body. Throws a 400 if the body cannot be read.
    ///
    /// - Parameters:
    ///   - other: another media type accepted as JSON.
    ///   - parse: throws an error whose description is for the client.
    package func read<Body, Failure: Error & CustomStringConvertible>(
        atMost limit: Int, as other: String? = nil, _ parse: ([UInt8]) throws(Failure) -> Body
    ) async throws(APIError) -> Body {
        try checkIsJSON(or: other)
        let bytes = try await bytes(upTo: limit)
        do {
            return try parse(bytes)
        } catch {
            throw APIError(status: .badRequest, message: error.description)
        }
    }

    /// Returns the body, of at most `limit` bytes.
    package func bytes(upTo limit: Int) async throws(APIError) -> [UInt8] {
        do {
            return Array(try await body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw APIError(status: .contentTooLarge, message: "the body is larger than \(limit) bytes")
        } catch {
            throw APIError(status: .badRequest, message: "the body is incomplete; send it again")
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
