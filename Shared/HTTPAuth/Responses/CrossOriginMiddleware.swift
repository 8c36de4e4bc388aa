package import Hummingbird
import HTTPTypes

/// Lets web clients of listed origins read the responses (CORS, WHATWG Fetch §3.2), and answers their preflight
/// requests. Add it before all routes.
///
/// An app's origins are `web-origins` in the apps file. A preflight request names no app, so an origin is allowed if any
/// app lists it. Callers send their bearer token explicitly and credentials are not allowed, so a foreign page cannot act
/// for a user.
package struct CrossOriginMiddleware<Context: RequestContext>: RouterMiddleware {
    private let isListed: @Sendable (String) -> Bool

    /// The time for which a browser may reuse the answer to a preflight request, in seconds. Chromium allows 7,200.
    static var maximumAge: Int { 600 }
    private static var methods: String { "GET, POST, PUT, PATCH, DELETE" }
    private static var requestHeaders: String {
        "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Client-Id"
    }
    private static var responseHeaders: String { "Retry-After, WWW-Authenticate" }

    /// - Parameter isListed: whether an app lists the origin.
    package init(isListed: @escaping @Sendable (String) -> Bool) { self.isListed = isListed }

    package func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard let origin = request.headers[.origin] else { return try await next(request, context) }
        guard request.method == .options, request.headers[.accessControlRequestMethod] != nil else {
            var response: Response
            // The router throws for an unknown path.
            do { response = try await next(request, context) } catch let error as any HTTPResponseError {
                response = try error.response(from: request, context: context)
            }
            response.headers.append(HTTPField(name: .vary, value: "Origin"))
            if isListed(origin) {
                response.headers[.accessControlAllowOrigin] = origin
                response.headers[.accessControlExposeHeaders] = Self.responseHeaders
            }
            return response
        }
        guard isListed(origin) else {
            return .problem(
                APIError(
                    status: .forbidden,
                    message: "no app lists the request's origin; add it to web-origins in the apps file"))
        }
        return Response(
            status: .noContent,
            headers: [
                .accessControlAllowOrigin: origin, .accessControlAllowMethods: Self.methods,
                .accessControlAllowHeaders: Self.requestHeaders, .accessControlMaxAge: "\(Self.maximumAge)",
                .vary: "Origin",
            ])
    }
}
