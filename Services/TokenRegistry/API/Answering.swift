import Foundation
import Hummingbird
import Logging
import PushProtocol

extension Response {
    /// What `carryOut` answers. What it refuses and what goes wrong are told by `tell`; only the latter is logged, as
    /// `failure`.
    static func answering(
        _ context: BasicRequestContext, failure: String, telling tell: (APIRefusal) -> Response = Response.problem,
        carryOut: () async throws -> Response
    ) async -> Response {
        do {
            return try await carryOut()
        } catch let refusal as APIRefusal {
            return tell(refusal)
        } catch {
            context.logger.error("\(failure)", metadata: ["error": "\(error)"])
            return tell(.databaseAway)
        }
    }
}

extension Request {
    /// The body: JSON, unless it says that it is something else, of at most `limit` bytes.
    func json(upTo limit: Int) async throws(APIRefusal) -> [UInt8] {
        try checkIsJSON()
        do {
            return Array(try await body.collect(upTo: limit).readableBytesView)
        } catch {
            throw APIRefusal(status: .contentTooLarge, message: "the body is larger than \(limit) bytes")
        }
    }

    /// Refuses a body that says that it is something else. One that does not say is looked at.
    private func checkIsJSON() throws(APIRefusal) {
        guard let type = headers[.contentType] else { return }
        let media = type.prefix { $0 != ";" }.trimmingSuffix(while: \.isWhitespace)
        guard media.lowercased() == "application/json" else {
            throw APIRefusal(
                status: .unsupportedMediaType, message: "the body has to be JSON; send Content-Type: application/json")
        }
    }
}

extension BasicRequestContext {
    /// What the path has for its part `name`, an id of 1–128 visible ASCII characters.
    func id<ID: CheckedText>(inPath name: String) throws(APIRefusal) -> ID {
        // The router hands over what stands in the path, still percent-encoded.
        guard let id = parameters.get(name)?.removingPercentEncoding.flatMap(ID.init(rawValue:)) else {
            throw APIRefusal(
                status: .badRequest,
                message: "the \(name) in the path is invalid: expected 1–128 visible ASCII characters, percent-encoded "
                    + "where a path needs it")
        }
        return id
    }
}

extension Substring {
    fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
        var text = self
        while let last = text.last, predicate(last) { text.removeLast() }
        return text
    }
}
