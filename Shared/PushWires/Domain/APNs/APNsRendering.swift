import PushProtocol
import PushSending

/// The headers of a push, and its body for each badge that occurs among the targets: rendered once, shared by all.
final class APNsRendering: PushRendering {
    typealias Body = Result<[UInt8], LocalRejection>

    enum Bodies: Sendable {
        /// The same for everybody.
        case one(Body)
        case byBadge([Int?: Body])

        subscript(badge: Int?) -> Body? {
            switch self {
            case .one(let body): body
            case .byBadge(let bodies): bodies[badge]
            }
        }
    }

    let letter: Result<APNsLetter, LocalRejection>
    let bodies: Bodies
    /// For the targets that are channels; `nil` when none is.
    let broadcast: Result<APNsBroadcast, LocalRejection>?

    init(
        letter: Result<APNsLetter, LocalRejection>, bodies: Bodies, broadcast: Result<APNsBroadcast, LocalRejection>?
    ) {
        self.letter = letter
        self.bodies = bodies
        self.broadcast = broadcast
    }

    func begin(in batch: inout RequestBatch) {
        // Without headers there is nothing to begin: ``add`` refuses every target.
        guard case .success(let letter) = letter else { return }
        batch.begin(letter.text)
    }

    func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        switch target.address {
        case nil: try add(device: target, to: &batch)
        case .channel:
            guard let broadcast else { throw LocalRejection("not-rendered") }
            try broadcast.get().add(target.token.secret, to: &batch)
            // What follows may be a device again.
            begin(in: &batch)
        case .fid, .topic, .condition: throw LocalRejection("address-not-of-apns")
        }
    }

    private func add(device target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        let letter = try letter.get()
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
        if letter.collapsesByNotification {
            batch.write(target.notification)
            batch.endValue()
        }
        if let expiration = letter.expiration {
            batch.write(expiration)
            batch.endValue()
        }
        batch.endRequest(body: bytes)
    }
}
