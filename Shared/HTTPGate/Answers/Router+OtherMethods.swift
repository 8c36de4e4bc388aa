import HTTPTypes
package import Hummingbird

extension Router {
    /// Answers 405 with `Allow` (RFC 9110 §15.5.6) for every method that a path does not have. After every route.
    package func refuseOtherMethods() {
        for (path, routes) in Dictionary(grouping: routes, by: { $0.path.description }) {
            let allowed = routes.map(\.method.rawValue).sorted().joined(separator: ", ")
            for method: HTTPRequest.Method in [
                .get, .head, .post, .put, .patch, .delete, .options, .trace, .query,
            ]
            where !routes.contains(where: { $0.method == method }) {
                on(RouterPath(path), method: method) { _, _ in
                    var response = Response.problem(
                        APIRefusal(
                            status: .methodNotAllowed, message: "\(method) is not for \(path); it takes \(allowed)"))
                    response.headers[.allow] = allowed
                    // What answers HEAD has no body (RFC 9110 §9.3.2).
                    if method == .head { response.body = ResponseBody() }
                    return response
                }
            }
        }
    }
}
