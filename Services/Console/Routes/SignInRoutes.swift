import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird

/// Sign-in and sign-out.
struct SignInRoutes: Sendable {
    enum Method: Sendable {
        case development
        case provider(OpenIDProvider)
    }

    let frame: ConsoleFrame
    let method: Method

    func add(to router: Router<BasicRequestContext>) {
        router.get("sign-in") { request, _ in
            let target = SignIn.path(QueryParameters(request)["target"] ?? "/")
            switch method {
            case .development: return frame.response(SignInPage.development(target: target), for: nil)
            case .provider: return frame.response(SignInPage.provider(target: target), for: nil)
            }
        }
        switch method {
        case .development:
            router.post("sign-in") { request, _ in await answer { () throws(APIError) in try await develop(request) } }
        case .provider(let provider):
            router.get("sign-in/start") { request, _ in
                await answer { () throws(APIError) in try await begin(request, provider) }
            }
            router.get("sign-in/callback") { request, _ in
                await answer { () throws(APIError) in try await end(request, provider) }
            }
        }
        router.post("sign-out") { request, _ in
            await frame.act(request, for: .look, .signedOut, subject: "") { _, _ in
                ("done", ConsoleFrame.redirect(to: "/sign-in", cookies: [frame.keeper.cookie(for: nil as Session?)]))
            }
        }
    }

    private func answer(_ body: () async throws(APIError) -> Response) async -> Response {
        do throws(APIError) {
            return try await body()
        } catch {
            return frame.response(Page(error), for: nil, status: error.status)
        }
    }

    private func develop(_ request: Request) async throws(APIError) -> Response {
        // No form token exists before a session; a page of another site must not sign anyone in.
        guard request.headers[.origin] == frame.keeper.address.origin else {
            throw APIError(
                status: .forbidden, message: "The form comes from another site. Open \(frame.keeper.address.origin).")
        }
        let fields = try await frame.fields(of: request)
        guard let role = fields["role"].flatMap(Role.init), let name = fields["name"], (1...100).contains(name.count)
        else {
            throw APIError(status: .badRequest, message: "A name and a role are missing. Go back and fill in both.")
        }
        return try await signedIn(Session(name: name, role: role), target: fields["target"] ?? "/")
    }

    private func begin(_ request: Request, _ provider: OpenIDProvider) async throws(APIError) -> Response {
        try frame.check(request)
        let signIn = SignIn(target: QueryParameters(request)["target"] ?? "/")
        do throws(OpenIDProvider.SignInError) {
            return ConsoleFrame.redirect(
                to: try await provider.page(for: signIn), cookies: [frame.keeper.cookie(for: signIn)])
        } catch {
            throw APIError(status: .badGateway, message: error.message)
        }
    }

    /// The issuer's response (OpenID Connect Core 1.0 §3.1.2.5).
    private func end(_ request: Request, _ provider: OpenIDProvider) async throws(APIError) -> Response {
        try frame.check(request)
        let query = QueryParameters(request)
        guard let signIn = frame.keeper.signIn(of: request), query["state"] == signIn.state else {
            throw APIError(
                status: .badRequest, message: "The sign-in is too old, or began in another browser. Sign in again.")
        }
        guard let code = query["code"] else {
            throw APIError(
                status: .forbidden, message: "The issuer refused the sign-in. Sign in again, or ask its administrator.")
        }
        let session: Session
        do throws(OpenIDProvider.SignInError) {
            session = try await provider.session(code: code, of: signIn)
        } catch {
            throw APIError(status: .forbidden, message: error.message)
        }
        return try await signedIn(session, target: signIn.target)
    }

    private func signedIn(_ session: Session, target: String) async throws(APIError) -> Response {
        try await frame.record(
            AuditEntry(at: frame.now(), person: session.name, role: session.role, action: .signedIn, result: "done"))
        return ConsoleFrame.redirect(
            to: SignIn.path(target),
            cookies: [frame.keeper.cookie(for: session), frame.keeper.cookie(for: nil as SignIn?)])
    }
}
