import HTTPAuth
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import CoreMetrics
import MetricsTestKit
import Testing

@Suite struct RequestMetricsTests {
    private let metrics = TestMetrics()

    /// Sends a request, and returns the labels of all recorded durations.
    private func send(_ method: HTTPRequest.Method, _ path: String) async throws -> [[String: String]] {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        router.get("users/:user/devices") { _, _ in "text" }
        router.get("fails") { _, _ -> String in throw HTTPError(.conflict) }
        router.get("breaks") { _, _ -> String in throw CancellationError() }
        router.addMethodNotAllowedRoutes()
        try await withMetricsFactory(metrics) {
            try await Application(router: router).test(.router) { client in
                try await client.execute(uri: path, method: method) { _ in }
            }
        }
        return metrics.timers.filter { $0.label == "heliograph_http_server_request_duration_seconds" }
            .filter { !$0.values.isEmpty }.map { Dictionary(uniqueKeysWithValues: $0.dimensions) }
    }

    @Test(arguments: [
        (HTTPRequest.Method.get, "/users/alice/devices", "GET", "/users/{user}/devices", "200"),
        (.put, "/users/alice/devices", "PUT", "/users/{user}/devices", "405"),
        (.get, "/fails", "GET", "/fails", "409"), (.get, "/breaks", "GET", "/breaks", "500"),
        (.get, "/wp-login.php", "GET", "none", "404"),
    ])
    func `a request is recorded by its route, never by its path`(
        method: HTTPRequest.Method, path: String, name: String, route: String, status: String
    ) async throws {
        #expect(try await send(method, path) == [["method": name, "route": route, "status": status]])
    }

    @Test func `an invented method has no label of its own`() async throws {
        let labels = try await send(HTTPRequest.Method(rawValue: "BREW")!, "/fails")
        #expect(labels == [["method": "other", "route": "none", "status": "404"]])
    }
}
