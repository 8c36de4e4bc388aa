package import Hummingbird
package import PushProtocol

extension BearerGate {
    /// Answers what a user asks, or says as a problem why not.
    package func answer(
        _ request: Request, _ context: some RequestContext, carryOut: (Caller) async throws -> Response
    ) async -> Response {
        await .answering(context) { try await carryOut(try await admit(request.bearerToken)) }
    }
}

extension KeyGate {
    /// Something that was asked for, about one app or, `nil`, about all.
    package typealias Question = (app: AppID?, answer: () async throws -> JSONValue)

    /// Reads what is asked, lets a key through that is for that, and answers.
    package func answer(
        _ request: Request, _ context: some RequestContext, _ operation: APIKey.Operation,
        _ read: (Query) throws -> Question
    ) async -> Response {
        await .answering(context) {
            // Who has no key learns nothing of what a question should look like.
            let caller = try await self.caller(request.bearerToken, to: operation)
            let question = try read(Query(request))
            try self.admit(caller, to: operation, of: question.app)
            return .json(.ok, try await question.answer())
        }
    }
}
