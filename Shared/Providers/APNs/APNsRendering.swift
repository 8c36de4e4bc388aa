import PushProtocol

/// The headers of a push, and one body for each distinct badge of its targets. Rendered once and shared.
final class APNsRendering: PushRendering {
    typealias Body = Result<[UInt8], LocalRejection>

    enum Bodies: Sendable {
        /// One body for all targets.
        case one(Body)
        case byBadge([Int?: Body])

        subscript(badge: Int?) -> Body? {
            switch self {
            case .one(let body): body
            case .byBadge(let bodies): bodies[badge]
            }
        }
    }

    let template: Result<APNsHeaderTemplate, LocalRejection>
    let bodies: Bodies
    /// The rendering for channel targets; `nil` without one.
    let broadcast: Result<APNsBroadcast, LocalRejection>?

    init(
        template: Result<APNsHeaderTemplate, LocalRejection>, bodies: Bodies,
        broadcast: Result<APNsBroadcast, LocalRejection>?
    ) {
        self.template = template
        self.bodies = bodies
        self.broadcast = broadcast
    }

    func begin(in batch: inout ProviderRequestBatch) {
        // Without headers, ``add`` rejects every target.
        guard case .success(let template) = template else { return }
        batch.begin(template.fields)
    }

    func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        switch target.address {
        case nil: try add(device: target, to: &batch)
        case .channel:
            guard let broadcast else { throw LocalRejection("not-rendered") }
            try broadcast.get().add(target.token.secret, to: &batch)
            // The next target may be a device.
            begin(in: &batch)
        case .fid, .topic, .condition: throw LocalRejection("address-not-of-apns")
        }
    }

    private func add(device target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        let template = try template.get()
        guard let token = DeviceToken(target.token.secret, for: .apns) else {
            throw LocalRejection("malformed-token", suspectToken: true)
        }
        guard let body = bodies[target.badge] else { throw LocalRejection("not-rendered") }
        let bytes = try body.get()
        batch.write("/3/device/")
        batch.write(token.secret)
        batch.endValue()
        batch.write(target.pushID)
        batch.endValue()
        if template.collapsesByNotification {
            batch.write(target.notification)
            batch.endValue()
        }
        if let expiration = template.expiration {
            batch.write(expiration)
            batch.endValue()
        }
        batch.endRequest(body: bytes)
    }
}
