/// The metadata keys shared by all services.
package enum LogKey {
    package static let app = "app"
    package static let campaign = "campaign"
    package static let condition = "condition"
    package static let correlation = "correlation"
    package static let count = "count"
    package static let device = "device"
    package static let environment = "environment"
    package static let error = "error"
    package static let notification = "notification"
    package static let path = "path"
    package static let provider = "provider"
    package static let reason = "reason"
    package static let routingKey = "routing_key"
    package static let row = "row"
    package static let table = "table"
    package static let version = "version"
}
