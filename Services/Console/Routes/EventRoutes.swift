import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// The event's page, its revocation and its links for support.
struct EventRoutes: Sendable {
    /// How long a link for support is valid, in seconds.
    static let linkTime = 86_400.0

    let frame: ConsoleFrame
    let rules: OperatorAPI
    let links: Seal

    func add(to router: Router<BasicRequestContext>) {
        router.get("event") { request, _ in
            await frame.page(request, for: .support) { query, session throws(APIError) in
                let (app, event) = (try query.required("app"), try query.required("id"))
                let page = EventPage(
                    explanations: try await explain(event, app: app, user: query["user"], after: query["after"]),
                    app: app, event: event)
                return page.page(formToken: frame.keeper.formToken(of: session), role: session.role)
            }
        }
        router.post("event/revoke") { request, _ in
            await frame.act(request, for: .operate, .revoked, subject: "id") { fields, session throws(APIError) in
                let (app, event) = (fields["app"] ?? "", fields["id"] ?? "")
                guard let reason = fields["reason"], !reason.isEmpty else {
                    throw APIError(status: .badRequest, message: "The reason is missing. Go back and write it.")
                }
                _ = try await rules.post(
                    "/v1/operator/revocations",
                    body: [
                        "app": .string(app), "event": .string(event), "reason": .string("\(reason) (\(session.name))"),
                    ])
                return ("done", ConsoleFrame.redirect(to: Parts.eventPath(event, app: app)))
            }
        }
        router.post("event/link") { request, _ in
            await frame.act(request, for: .support, .madeSupportLink, subject: "id") { fields, session in
                let token = links.text(
                    of: ["app": .string(fields["app"] ?? ""), "event": .string(fields["id"] ?? "")],
                    until: frame.now().addingTimeInterval(Self.linkTime))
                let page = SignInPage.link("\(frame.keeper.address.origin)/shared/\(token)")
                return ("done", frame.response(page, for: session))
            }
        }
        router.get("shared/{token}") { _, context in await shared(context.parameters.get("token") ?? "") }
    }

    private func shared(_ token: String) async -> Response {
        do throws(APIError) {
            guard let value = links.value(of: token, now: frame.now()), let app = value["app"]?.string,
                let event = value["event"]?.string
            else {
                throw APIError(status: .notFound, message: "The link is too old or damaged. Ask for a new one.")
            }
            let page = EventPage(
                explanations: try await explain(event, app: app, user: nil, after: nil), app: app, event: event,
                isRedacted: true)
            return frame.response(page.page(formToken: nil, role: nil), for: nil)
        } catch {
            return frame.response(Page(error), for: nil, status: error.status)
        }
    }

    private func explain(
        _ event: String, app: String, user: String?, after: String?
    ) async throws(APIError) -> JSONValue {
        try await rules.get(
            "/v1/operator/events/\(FormCoding.encoded(event))", [("app", app), ("user", user), ("after", after)])
    }
}

extension QueryParameters {
    /// A parameter that a form always sends.
    func required(_ name: String) throws(APIError) -> String {
        guard let text = self[name], !text.isEmpty else {
            throw APIError(status: .badRequest, message: "“\(name)” is missing. Start at the first page.")
        }
        return text
    }
}
