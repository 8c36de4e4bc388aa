package import Hummingbird
import HTTPTypes
import Metrics
import Synchronization

/// Records each request of an HTTP API. Add it before the routes and before all other middleware.
///
/// The route is its template, such as `/v1/users/{user}/devices`; no label contains a part of a request. A request
/// without a route has the route `none`.
package struct RequestMetrics<Context: RequestContext>: RouterMiddleware {
    private struct Key: Hashable {
        var method: String
        var route: String
        var status: Int
    }

    private final class Timers: Sendable {
        private let known = Mutex<[Key: Timer]>([:])

        func timer(_ key: Key) -> Timer {
            known.withLock { known in
                if let timer = known[key] { return timer }
                let timer = Timer(
                    label: "heliograph_http_server_request_duration_seconds",
                    dimensions: [("method", key.method), ("route", key.route), ("status", "\(key.status)")],
                    preferredDisplayUnit: .seconds)
                known[key] = timer
                return timer
            }
        }
    }

    private static var methods: Set<HTTPRequest.Method> {
        [.get, .head, .post, .put, .patch, .delete, .options]
    }

    private let timers = Timers()

    package init() {}

    package func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        do {
            let response = try await next(request, context)
            record(request, context, response.status, since: start)
            return response
        } catch {
            let status = (error as? any HTTPResponseError)?.status ?? .internalServerError
            record(request, context, status, since: start)
            throw error
        }
    }

    private func record(
        _ request: Request, _ context: Context, _ status: HTTPResponse.Status, since start: ContinuousClock.Instant
    ) {
        let method = Self.methods.contains(request.method) ? request.method.rawValue : "other"
        // Hummingbird writes NotFound for a request without a route.
        let route = context.endpointPath.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "none"
        let key = Key(method: method, route: route, status: status.code)
        timers.timer(key).record(duration: .now - start)
    }
}
