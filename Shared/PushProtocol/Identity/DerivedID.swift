package import FoundationEssentials
import Crypto

/// Ids are derived, never drawn: a redelivery makes the same ids again, so every later stage can recognise it.
package enum DerivedID {
    /// The namespace of every id made here; a constant of the protocol.
    package static let namespace = UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!

    /// The id of what one rule says to one recipient about one event.
    package static func notification(source: String, event: String, rule: String, recipient: UserID) -> UUID {
        uuid5(namespace, ["notification", source, event, rule, recipient.rawValue])
    }

    /// The id of what a campaign says to one member of its audience.
    package static func notification(campaign: UUID, recipient: UserID) -> UUID {
        uuid5(campaign, ["member", recipient.rawValue])
    }

    /// The id of the `index`-th message that carries a rule's notifications for an event.
    package static func message(source: String, event: String, rule: String, index: Int) -> UUID {
        uuid5(namespace, ["message", source, event, rule, String(index)])
    }

    /// The `apns-id` (and FCM's equivalent in our records) of one notification on one device.
    package static func push(notification: UUID, device: UUID) -> UUID {
        // Twice as fast as by way of the parts, and made for every target.
        let between: StaticString = "4:push36:"
        let start = 16 + between.utf8CodeUnitCount
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: start + 36) { text in
            let raw = UnsafeMutableRawBufferPointer(text)
            raw.storeBytes(of: notification.uuid, as: uuid_t.self)
            UnsafeMutableRawBufferPointer(rebasing: raw[16..<start]).copyMemory(
                from: UnsafeRawBufferPointer(start: between.utf8Start, count: between.utf8CodeUnitCount))
            Hexadecimal.write(device, .lower, to: UnsafeMutableBufferPointer(rebasing: text[start...]))
            return version5(of: UnsafeRawBufferPointer(text))
        }
    }

    /// The id of a registration: it follows from what is registered, so a changed token is another registration.
    package static func device(
        app: AppID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken
    ) -> UUID {
        uuid5(namespace, ["device", app.rawValue, provider.rawValue, environment.rawValue, token.secret])
    }

    /// The id of the `index`-th message that a stage makes out of the message `cause`.
    package static func caused(by cause: UUID, _ what: String, index: Int = 0) -> UUID {
        uuid5(cause, [what, String(index)])
    }

    /// UUID version 5 (RFC 9562 §5.5) of `parts` in `namespace`. The parts are length-prefixed, so that
    /// `["ab", "c"]` and `["a", "bc"]` differ.
    package static func uuid5(_ namespace: UUID, _ parts: [String]) -> UUID {
        var hash = Insecure.SHA1()
        withUnsafeBytes(of: namespace.uuid) { hash.update(bufferPointer: $0) }
        for var part in parts {
            let prefix = "\(part.utf8.count):"
            hash.update(data: Array(prefix.utf8))
            part.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        }
        return version5(hash.finalize())
    }

    private static func version5(of text: UnsafeRawBufferPointer) -> UUID {
        var hash = Insecure.SHA1()
        hash.update(bufferPointer: text)
        return version5(hash.finalize())
    }

    private static func version5(_ digest: Insecure.SHA1.Digest) -> UUID {
        digest.withUnsafeBytes { digest in
            var bytes = digest.loadUnaligned(as: uuid_t.self)
            bytes.6 = (bytes.6 & 0x0f) | 0x50
            bytes.8 = (bytes.8 & 0x3f) | 0x80
            return UUID(uuid: bytes)
        }
    }

    /// UUID version 5 of `word`, ended by a NUL, and of the sixteen bytes of each of `ids` in `namespace`.
    package static func uuid5(_ namespace: UUID, _ word: String, ids: [UUID]) -> UUID {
        var text: [UInt8] = []
        text.reserveCapacity(16 * (ids.count + 1) + word.utf8.count + 1)
        withUnsafeBytes(of: namespace.uuid) { text.append(contentsOf: $0) }
        text.append(contentsOf: word.utf8)
        text.append(0)
        for id in ids { withUnsafeBytes(of: id.uuid) { text.append(contentsOf: $0) } }
        return text.withUnsafeBytes { version5(of: $0) }
    }
}
