import DecisionLog
import Foundation
import HTTPAuth
import Hummingbird
import PushProtocol

/// `/v1/operator`: explanations and counts for operators and servers, by API key.
struct OperatorRoutes: Sendable {
    static let usualPage = 50

    let explanations: ExplanationStore
    let revocations: RevocationLog
    let counts: CountStore
    let histories: UserHistoryStore
    let keys: APIKeyAuthenticator
    let now: @Sendable () async throws -> Timestamp

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/operator/events/{event}") { request, context in
            await keys.answer(request, context, .readEvents) { query in
                let question = try question(context, query)
                return (question.app, { try await explain(question) })
            }
        }
        router.get("v1/operator/notifications") { request, context in
            await keys.answer(request, context, .readEvents) { query in
                let (app, user) = (try query.app(), try query.user())
                let limit = try query.limit(maximum: UserHistoryStore.maximumRows) ?? Self.usualPage
                return (app, { try await histories.history(of: user, in: app, limit: limit).json })
            }
        }
        router.get("v1/operator/counts") { request, context in
            await keys.answer(request, context, .readCounts) { query in
                let app = try query.has("app") ? query.app() : nil
                let (from, until) = (try moment("from", query), try moment("until", query))
                return (app, { try await counts.counts(of: app, in: window(from: from, until: until)).json })
            }
        }
    }

    private func window(from: Timestamp?, until: Timestamp?) async throws -> CountWindow {
        let end: Timestamp
        if let until { end = until } else { end = try await now() }
        guard let window = CountWindow(from: from, until: end) else {
            throw APIError(
                status: .badRequest,
                message: "“from” is not before “until”, or more than \(CountWindow.maximumDays) days before it")
        }
        return window
    }

    private func moment(_ name: String, _ query: QueryParameters) throws(APIError) -> Timestamp? {
        guard let text = query[name] else { return nil }
        // In a query `+` decodes to a space.
        guard let date = RFC3339.date(from: text.replacing(" ", with: "+")) else {
            throw .query(name, "a time such as 2026-03-31T09:00:00Z")
        }
        return Timestamp(date)
    }

    private func explain(_ question: ExplanationStore.ExplanationQuery) async throws -> JSONValue {
        let explanations = try await revocations.adding(to: explanations.explain(question))
        guard !explanations.isEmpty else {
            throw APIError(
                status: .notFound,
                message: question.after == nil
                    ? "no decision about such an event: it did not arrive, was dropped (unknown type, expired), "
                        + "is dead-lettered, or is too old"
                    : "“after” is not the “next” of an answer about this event, or is too old; start again without it"
            )
        }
        return [
            "events": .array(explanations.map(\.json)),
            "reasons": Explanation.meanings(of: explanations.map(\.reasons).reduce([]) { $0.union($1) }),
        ]
    }

    private func question(
        _ context: BasicRequestContext, _ query: QueryParameters
    ) throws(APIError) -> ExplanationStore.ExplanationQuery {
        // Event ids are arbitrary text. The router passes path parameters percent-encoded.
        guard let event = context.parameters.get("event")?.removingPercentEncoding,
            CloudEvents.isID(event)
        else {
            throw APIError(
                status: .badRequest,
                message:
                    "the event in the path is not an event's id: expected 1–\(CloudEvents.maximumNameLength) bytes "
                    + "without control characters, percent-encoded where a path needs it")
        }
        var question = ExplanationStore.ExplanationQuery(event: event, limit: Self.usualPage)
        if query.has("app") { question.app = try query.app() }
        if query.has("user") { question.user = try query.user().rawValue }
        if let text = query["after"] {
            guard let notification = UUID(uuidString: text) else {
                throw .query("after", "a “next” of an earlier answer")
            }
            question.after = notification
        }
        if let limit = try query.limit(maximum: ExplanationStore.maximumPageSize) { question.limit = limit }
        return question
    }
}
