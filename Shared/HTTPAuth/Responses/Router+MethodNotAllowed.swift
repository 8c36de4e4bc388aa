package import Hummingbird
import HTTPTypes

extension Router {
    /// Adds a 405 route with `Allow` (RFC 9110 §15.5.6) for the other methods of each path. Call it after all routes
    /// are added.
    package func addMethodNotAllowedRoutes() {
        for (path, routes) in Dictionary(grouping: routes, by: { $0.path.description }) {
            let allowed = routes.map(\.method.rawValue).sorted().joined(separator: ", ")
            for method: HTTPRequest.Method in [
                .get, .head, .post, .put, .patch, .delete, .options, .trace, .query,
            ]
            where !routes.contains(where: { $0.method == method }) {
                on(RouterPath(path), method: method) { _, _ in
                    var response = Response.problem(
                        APIError(
                            status: .methodNotAllowed, message: "\(path) does not allow \(method); use \(allowed)"))
                    response.headers[.allow] = allowed
                    // A response to HEAD has no body (RFC 9110 §9.3.2).
                    if method == .head { response.body = ResponseBody() }
                    return response
                }
            }
        }
    }
}
