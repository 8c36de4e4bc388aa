package import Foundation
package import Hummingbird
package import PushProtocol

extension RequestContext {
    /// Returns the path parameter `name`, an id of 1–128 visible ASCII characters.
    package func id<ID: ValidatedString>(inPath name: String) throws(APIError) -> ID {
        // The router does not percent-decode parameters.
        guard let id = parameters.get(name)?.removingPercentEncoding.flatMap(ID.init(rawValue:)) else {
            throw APIError(
                status: .badRequest,
                message: "the \(name) in the path is invalid: expected 1–128 visible ASCII characters, percent-encoded "
                    + "where needed")
        }
        return id
    }

    package func uuid(inPath name: String) throws(APIError) -> UUID {
        guard let uuid = parameters.get(name).flatMap(UUID.init(uuidString:)) else {
            throw APIError(status: .badRequest, message: "the \(name) in the path is not a UUID")
        }
        return uuid
    }
}
