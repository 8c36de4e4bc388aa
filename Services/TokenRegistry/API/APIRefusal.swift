import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol

/// A request that is turned down, and why.
struct APIRefusal: Error {
    let status: HTTPResponse.Status
    let message: String
    /// What `WWW-Authenticate` says (RFC 6750 §3), where it says more than `Bearer`.
    var challenge: String?
    /// In how many seconds the same request may be sent again.
    var retryAfter: Int?

    static let databaseAway = APIRefusal(
        status: .serviceUnavailable, message: "the registry's database is away; try again")

    /// What the answer says besides its body.
    var headers: HTTPFields {
        var headers = HTTPFields()
        if let challenge = challenge ?? (status == .unauthorized ? "Bearer" : nil) {
            headers[.wwwAuthenticate] = challenge
        }
        if let retryAfter { headers[.retryAfter] = String(retryAfter) }
        return headers
    }
}

extension Request {
    /// The credentials of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme's case does not matter).
    var bearerToken: String? {
        guard let header = headers[.authorization], header.count > 7, header.prefix(7).lowercased() == "bearer " else {
            return nil
        }
        return String(header.dropFirst(7))
    }
}

extension Response {
    static func json(_ status: HTTPResponse.Status, _ value: JSONValue, headers: HTTPFields = [:]) -> Response {
        // A JSONValue always encodes: its only failure, a number that is not finite, cannot be read from JSON.
        let body = (try? WireCoding.encode(value)) ?? []
        var headers = headers
        headers[.contentType] = "application/json; charset=utf-8"
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
    }
}
