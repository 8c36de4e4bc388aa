package import Foundation
package import Hummingbird
package import PushProtocol

extension RequestContext {
    /// What the path has for its part `name`, an id of 1–128 visible ASCII characters.
    package func id<ID: CheckedText>(inPath name: String) throws(APIRefusal) -> ID {
        // The router hands over what stands in the path, still percent-encoded.
        guard let id = parameters.get(name)?.removingPercentEncoding.flatMap(ID.init(rawValue:)) else {
            throw APIRefusal(
                status: .badRequest,
                message: "the \(name) in the path is invalid: expected 1–128 visible ASCII characters, percent-encoded "
                    + "where a path needs it")
        }
        return id
    }

    /// What the path has for its part `name`, a UUID.
    package func uuid(inPath name: String) throws(APIRefusal) -> UUID {
        guard let uuid = parameters.get(name).flatMap(UUID.init(uuidString:)) else {
            throw APIRefusal(status: .badRequest, message: "the \(name) in the path is not a UUID")
        }
        return uuid
    }
}
