import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import NIOCore

/// The frame of every page: the session, the role, errors and the headers of the response.
struct ConsoleFrame: Sendable {
    let keeper: SessionKeeper
    let audit: AuditLog
    var now: @Sendable () -> Date = { Date() }

    /// Answers with a page for a signed-in person of at least this role.
    func page(
        _ request: Request, for role: Role,
        _ build: (QueryParameters, Session) async throws(APIError) -> Page
    ) async -> Response {
        guard let session = keeper.session(of: request) else { return toSignIn(request) }
        do throws(APIError) {
            try check(request)
            guard session.role >= role else { throw .needs(role) }
            return response(try await build(QueryParameters(request), session), for: session)
        } catch {
            return response(Page(error), for: session, status: error.status)
        }
    }

    /// Carries out a form of a signed-in person: records it, acts, and records the result.
    ///
    /// - Parameter act: acts and returns the result in words for the audit log, and the response.
    func act(
        _ request: Request, for role: Role, _ action: AuditEntry.Action, subject: String,
        _ act: ([String: String], Session) async throws(APIError) -> (result: String, response: Response)
    ) async -> Response {
        guard let session = keeper.session(of: request) else { return toSignIn(request) }
        do throws(APIError) {
            let fields = try await fields(of: request)
            guard keeper.isFormToken(fields["form_token"] ?? "", of: session) else { throw .formExpired }
            guard session.role >= role else { throw .needs(role) }
            var entry = AuditEntry(
                at: now(), person: session.name, role: session.role, action: action, app: fields["app"],
                subject: fields[subject], reason: fields["reason"], result: "requested")
            try await record(entry)
            do throws(APIError) {
                let (result, response) = try await act(fields, session)
                (entry.at, entry.result) = (now(), result)
                try await record(entry)
                return response
            } catch {
                (entry.at, entry.result) = (now(), "failed: \(error.message)")
                try await record(entry)
                throw error
            }
        } catch {
            return response(Page(error), for: session, status: error.status)
        }
    }

    /// The fields of a form of this console.
    func fields(of request: Request) async throws(APIError) -> [String: String] {
        try check(request)
        do throws(APIError) {
            let bytes = try await request.bytes(upTo: FormCoding.maximumSize)
            return FormCoding.fields(of: String(decoding: bytes, as: UTF8.self))
        } catch {
            throw APIError(status: error.status, message: "The form cannot be read: \(error.message).")
        }
    }

    func record(_ entry: AuditEntry) async throws(APIError) {
        do {
            try await audit.append(entry)
        } catch {
            throw APIError(
                status: .internalServerError,
                message: "The audit log cannot be written, so nothing is done. An operator looks at CONSOLE_AUDIT_FILE."
            )
        }
    }

    /// Another name for this host, which another site may have given it, must not reach a session.
    func check(_ request: Request) throws(APIError) {
        guard request.head.authority == keeper.address.authority else {
            throw APIError(
                status: .misdirectedRequest,
                message:
                    "This is not the address of the console. Open \(keeper.address.origin), or correct CONSOLE_URL.")
        }
    }

    func response(_ page: Page, for session: Session?, status: HTTPResponse.Status = .ok) -> Response {
        let token = session.map(keeper.formToken(of:)) ?? ""
        let document = page.document(for: session, formToken: token)
        return Self.response(status, "text/html; charset=utf-8", Array(document.markup.utf8))
    }

    /// The only things a page loads are the console's own style sheet and images of its own.
    static func response(_ status: HTTPResponse.Status, _ type: String, _ body: [UInt8]) -> Response {
        var headers: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy:
                "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ]
        // With `no-referrer`, browsers would send forms with the origin `null`.
        if let name = HTTPField.Name("Referrer-Policy") { headers[name] = "same-origin" }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
    }

    /// - Parameter cookies: values of `Set-Cookie`.
    static func redirect(to target: String, cookies: [String] = []) -> Response {
        var response = response(.seeOther, "text/plain; charset=utf-8", [])
        response.headers[.location] = target
        for cookie in cookies { response.headers.append(HTTPField(name: .setCookie, value: cookie)) }
        return response
    }

    private func toSignIn(_ request: Request) -> Response {
        let target = request.method == .get ? request.uri.string : "/"
        return Self.redirect(to: "/sign-in?\(FormCoding.text([("target", target)]))")
    }
}
