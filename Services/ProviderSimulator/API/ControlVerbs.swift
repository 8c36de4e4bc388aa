import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol

/// What most routes of the control port are: something is posted, something is forgotten.
extension Router<BasicRequestContext> {
    /// In bytes: a script for some ten thousand tokens.
    private static var maximumBodySize: Int { 4 << 20 }

    /// `POST` of a JSON body to `path`. The answer is how many things were taken, under the path's own name.
    func take(_ path: String, _ take: @escaping @Sendable (JSONValue, Request) throws -> Int) {
        post(RouterPath(path)) { request, _ in
            let count = try take(try await Self.body(of: request), request)
            return Response.json { writer in writer.object { $0.member(path, count) } }
        }
    }

    /// `DELETE` of `path`.
    func forget(_ path: String, _ forget: @escaping @Sendable () -> Void) {
        delete(RouterPath(path)) { _, _ in
            forget()
            return Response(status: .noContent)
        }
    }

    static func body(of request: Request) async throws -> JSONValue {
        let buffer = try await request.body.collect(upTo: maximumBodySize)
        do {
            return try JSONReader.value(of: buffer.readableBytesView)
        } catch {
            throw ControlProblem("the body is not JSON at byte \(error.offset): \(error.problem)")
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
