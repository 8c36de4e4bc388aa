import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol

/// The two forms of most control routes: `POST` of JSON and `DELETE`.
extension Router<BasicRequestContext> {
    /// In bytes: enough for outcomes of about ten thousand tokens.
    private static var maximumBodySize: Int { 4 << 20 }

    /// Registers `POST` of a JSON body. The response is `{"<path>": <number of items accepted>}`.
    func postJSON(_ path: String, _ accept: @escaping @Sendable (JSONValue, Request) throws -> Int) {
        post(RouterPath(path)) { request, _ in
            let count = try accept(try await Self.body(of: request), request)
            return Response.json { writer in writer.object { $0.member(path, count) } }
        }
    }

    /// Registers `DELETE` of `path`; the response is 204.
    func deleteAll(_ path: String, _ remove: @escaping @Sendable () -> Void) {
        delete(RouterPath(path)) { _, _ in
            remove()
            return Response(status: .noContent)
        }
    }

    static func body(of request: Request) async throws -> JSONValue {
        let buffer = try await request.body.collect(upTo: maximumBodySize)
        do {
            return try ProviderJSON.value(of: buffer.readableBytesView)
        } catch {
            throw ControlRequestError("the body is not JSON at byte \(error.offset)")
        }
    }
}

extension Response {
    static func json(_ bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    static func json(_ write: (inout JSONWriter) -> Void) -> Response {
        var writer = JSONWriter()
        write(&writer)
        return json(writer.bytes)
    }
}
