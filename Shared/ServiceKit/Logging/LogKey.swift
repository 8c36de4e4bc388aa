/// The metadata keys shared by all services.
package enum LogKey {
    package static let app = "app"
    package static let condition = "condition"
    package static let correlation = "correlation"
    package static let count = "count"
    package static let environment = "environment"
    package static let error = "error"
    package static let notification = "notification"
    package static let path = "path"
    package static let provider = "provider"
    package static let reason = "reason"
    package static let routingKey = "routing_key"
    package static let trace = "traceparent"
    package static let version = "version"
}
