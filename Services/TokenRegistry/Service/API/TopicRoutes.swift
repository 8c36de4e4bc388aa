import HTTPAuth
import Hummingbird
import PushProtocol
import RegistryStore

/// `/v1/topics`: the topics that the caller subscribes to. Muted topics are preferences, which rules serves.
struct TopicRoutes: Sendable {
    let store: MembershipStore
    let gate: BearerAuthenticator

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/topics") { request, context in
            await gate.answer(request, context) { caller in
                let topics = try await store.topics(of: AppUser(app: caller.app, user: caller.user))
                return .json(.ok, ["topics": .array(topics.map { .string($0.rawValue) })])
            }
        }
        let group = router.group("v1/topics/{topic}")
        group.put { request, context in
            await gate.answer(request, context) { caller in
                let change = try change(of: caller, context, joins: true)
                // A change with the database's time is never too old, so only the limit can reject it.
                guard try await store.apply([change]) == 1 else {
                    throw APIError.tooManyGroups
                }
                return Response(status: .noContent)
            }
        }
        group.delete { request, context in
            await gate.answer(request, context) { caller in
                try await store.apply([try change(of: caller, context, joins: false)])
                return Response(status: .noContent)
            }
        }
    }

    private func change(
        of caller: Caller, _ context: BasicRequestContext, joins: Bool
    ) throws(APIError) -> MembershipStore.Change {
        let name: GroupName = try context.id(inPath: "topic")
        return .init(app: caller.app, change: MembershipChange(user: caller.user, group: .topic(name), joins: joins))
    }
}
