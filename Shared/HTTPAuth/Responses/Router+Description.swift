package import Hummingbird
import HTTPTypes
import NIOCore

extension Router {
    /// Serves the service's OpenAPI document as `/openapi.yaml`.
    package func addDescription(_ document: [UInt8]) {
        get("openapi.yaml") { _, _ in
            Response(
                // RFC 9512.
                status: .ok, headers: [.contentType: "application/yaml"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: document)))
        }
    }
}
