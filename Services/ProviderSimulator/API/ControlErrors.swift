import HTTPTypes
import Hummingbird

/// Turns whatever a route throws into `{"error": …}`, saying what is wrong with the request.
struct ControlErrors<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as ControlProblem {
            return .json(JSONWriter.object { $0.member("error", problem.description) }, status: .badRequest)
        } catch let error as any HTTPResponseError {
            let text = (error as? HTTPError)?.body ?? Self.explanation(of: error.status, request)
            return .json(JSONWriter.object { $0.member("error", text) }, status: error.status)
        }
    }

    private static func explanation(of status: HTTPResponse.Status, _ request: Request) -> String {
        switch status {
        case .notFound: "there is nothing at \(request.method) \(request.uri.path)"
        case .contentTooLarge: "the body is larger than the control port takes"
        default: status.reasonPhrase
        }
    }
}
