import HTTPAuth
import Hummingbird
import PushProtocol
import RuleEngine
import RuleLanguage

/// `/v1/inbox`: the caller's notifications, whether or not they were pushed.
struct InboxRoutes: Sendable {
    static let usualPage = 50
    static let largestPage = 200

    let store: InboxStore
    let currentRules: CurrentRules
    let gate: BearerAuthenticator
    let now: @Sendable () async throws -> Timestamp

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/inbox") { request, context in
            await gate.answer(request, context) { caller in
                let page = try page(QueryParameters(request))
                async let unread = store.unread(PersonKey(caller))
                let (items, isMore) = try await store.list(PersonKey(caller), page)
                return .json(
                    .ok,
                    [
                        "items": .array(items.map { json($0) }),
                        "next": .optional(isMore ? items.last?.place.text : nil),
                        "unread": .int(Int64(try await unread)),
                    ])
            }
        }
        router.get("v1/inbox/unread") { request, context in
            await gate.answer(request, context) { caller in
                .json(.ok, ["unread": .int(Int64(try await store.unread(PersonKey(caller))))])
            }
        }
        router.post("v1/inbox/read") { request, context in
            await gate.answer(request, context) { caller in
                let reading = try await request.read(atMost: ReadingBody.maximumSize, ReadingBody.init)
                let person = PersonKey(caller)
                let (marked, unread) = try await store.read(
                    reading, by: person, clearsShown: currentRules.clearsRead(person.app), now: try await now())
                return .json(.ok, ["marked": .int(Int64(marked)), "unread": .int(Int64(unread))])
            }
        }
        router.get("v1/inbox/{id}") { request, context in
            await gate.answer(request, context) { caller in
                guard let item = try await store.item(try context.uuid(inPath: "id"), of: PersonKey(caller)) else {
                    throw APIError(
                        status: .notFound, message: "there is no such item in your inbox; it may be deleted or too old")
                }
                return .json(.ok, json(item))
            }
        }
        router.delete("v1/inbox/{id}") { request, context in
            await gate.answer(request, context) { caller in
                _ = try await store.delete(
                    try context.uuid(inPath: "id"), of: PersonKey(caller), now: try await now())
                return Response(status: .noContent)
            }
        }
    }

    private func json(_ item: InboxItem) -> JSONValue {
        item.json(type: currentRules.ruleSets[item.rendered.app]?.rule(named: item.rendered.rule)?.policy.type)
    }

    private func page(_ query: QueryParameters) throws(APIError) -> InboxStore.Page {
        var page = InboxStore.Page(limit: try query.limit(maximum: Self.largestPage) ?? Self.usualPage)
        if let text = query["before"] {
            guard let place = InboxItem.Place(text) else { throw .query("before", "a “next” of an earlier answer") }
            page.before = place
        }
        if let isUnreadOnly = try query.flag("unread") { page.isUnreadOnly = isUnreadOnly }
        if let thread = query["thread"] {
            guard (1...ReadingBody.longestThread).contains(thread.unicodeScalars.count),
                !thread.utf8.contains(where: { $0 < 0x20 })
            else {
                throw .query("thread", "a thread of 1–\(ReadingBody.longestThread) characters")
            }
            page.thread = thread
        }
        return page
    }
}
