import Foundation
import Hummingbird
import Logging
import PushProtocol

/// `/v1/topics`: what the caller subscribes to (seed 001). The bearer token says who and in which app. What is muted is no
/// business of the registry's: that is a preference.
struct TopicRoutes: Sendable {
    private let store: MembershipStore
    private let gate: BearerGate

    init(store: MembershipStore, gate: BearerGate) {
        self.store = store
        self.gate = gate
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/topics") { request, context in
            try await answer(request, context) { caller in
                let topics = try await store.topics(of: AppUser(app: caller.app, user: caller.user))
                return .json(.ok, ["topics": .array(topics.map { .string($0.rawValue) })])
            }
        }
        let group = router.group("v1/topics/{topic}")
        group.put { request, context in
            try await answer(request, context) { caller in
                let change = try change(of: caller, context, joins: true)
                // The database's clock is never behind what it has written itself: only the limit is left.
                guard try await store.apply([change]) == 1 else {
                    throw APIRefusal(
                        status: .unprocessableContent,
                        message:
                            "you are in \(MembershipStore.mostGroups) topics and tags, which is the most; leave some")
                }
                return Response(status: .noContent)
            }
        }
        group.delete { request, context in
            try await answer(request, context) { caller in
                try await store.apply([try change(of: caller, context, joins: false)])
                return Response(status: .noContent)
            }
        }
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext, carryOut: (Caller) async throws -> Response
    ) async throws -> Response {
        do {
            return try await carryOut(try await gate.admit(request.bearerToken))
        } catch let refusal as APIRefusal {
            return .problem(refusal)
        } catch {
            context.logger.error("topics could not be served", metadata: ["error": "\(error)"])
            return .problem(
                APIRefusal(status: .serviceUnavailable, message: "the registry's database is away; try again"))
        }
    }

    private func change(
        of caller: Caller, _ context: BasicRequestContext, joins: Bool
    ) throws(APIRefusal) -> MembershipStore.Change {
        // The router hands over what stands in the path, still percent-encoded.
        let text = context.parameters.get("topic")?.removingPercentEncoding
        guard let text, let name = GroupName(rawValue: text) else {
            throw APIRefusal(
                status: .badRequest,
                message: "the topic in the path is invalid: expected 1–128 visible ASCII characters, percent-encoded "
                    + "where a path needs it")
        }
        return .init(app: caller.app, change: MembershipChange(user: caller.user, group: .topic(name), joins: joins))
    }
}
