import HTTPTypes
import Hummingbird
import PushProtocol

/// `POST /v1/events`: accepts CloudEvents in the structured, binary and batch mode.
struct EventRoutes: Sendable {
    let frame: PublishingFrame
    /// The maximum body of a batch, in bytes.
    let batchLimit: Int

    func add(to router: Router<BasicRequestContext>) {
        frame.add("v1/events", for: .publishEvents, to: router) { [batchLimit] request, caller in
            let headers = request.headers.map { (name: $0.name.rawName, value: $0.value) }
            let mode = try ContentMode(
                contentType: request.headers[.contentType],
                hasAttributes: headers.contains { $0.name.lowercased().hasPrefix(BinaryAttributes.headerPrefix) })
            let reader = EventReader(
                app: caller.app, key: try request.idempotencyKey, traceparent: request.headers[.traceparent],
                mayRequestNotifications: caller.may(.sendNotifications), types: caller.types)
            return PublishingFrame.Reading(
                mode: mode.rawValue, isBatch: mode == .batch,
                limit: mode == .batch ? batchLimit : WireCoding.maximumBodySize
            ) { body throws(EventRefusal) in
                switch mode {
                case .structured: [.success(try reader.structured(body))]
                case .binary: [.success(try reader.binary(headers, body: body))]
                case .batch: try reader.batch(body)
                }
            }
        }
    }
}
