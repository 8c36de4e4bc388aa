import HTTPTypes
import Hummingbird

/// Answers every error of a route with `{"error": …}`.
struct ControlErrorMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as ControlRequestError {
            return .json(JSONWriter.object { $0.member("error", problem.description) }, status: .badRequest)
        } catch let error as any HTTPResponseError {
            let text = (error as? HTTPError)?.body ?? Self.explanation(of: error.status, request)
            return .json(JSONWriter.object { $0.member("error", text) }, status: error.status)
        }
    }

    private static func explanation(of status: HTTPResponse.Status, _ request: Request) -> String {
        switch status {
        case .notFound: "no route for \(request.method) \(request.uri.path)"
        case .contentTooLarge: "the body exceeds the control port's limit"
        default: status.reasonPhrase
        }
    }
}
