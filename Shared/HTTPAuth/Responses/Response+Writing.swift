package import HTTPTypes
package import Hummingbird
package import PushProtocol
import NIOCore

extension Response {
    /// Returns an `application/problem+json` document (RFC 9457); `detail` is the error's message.
    package static func problem(_ refusal: APIError) -> Response { problem(refusal, members: [:]) }

    /// Returns a problem document with extension members (RFC 9457 §3.2).
    package static func problem(_ refusal: APIError, members: [String: JSONValue]) -> Response {
        let document = JSONValue.object(members).merging(problemDocument(refusal))
        var response = json(refusal.status, document, headers: refusal.headers)
        response.headers[.contentType] = "application/problem+json"
        return response
    }

    /// The members of a problem document.
    package static func problemDocument(_ refusal: APIError) -> JSONValue {
        [
            "type": "about:blank", "title": .string(refusal.status.reasonPhrase),
            "status": .int(Int64(refusal.status.code)), "detail": .string(refusal.message),
        ]
    }

    package static func json(_ status: HTTPResponse.Status, _ value: JSONValue, headers: HTTPFields = [:]) -> Response {
        // Encoding a JSONValue fails only for a non-finite number, which JSON cannot contain.
        let body = (try? WireCoding.encode(value)) ?? []
        var headers = headers
        headers[.contentType] = "application/json; charset=utf-8"
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
    }
}
