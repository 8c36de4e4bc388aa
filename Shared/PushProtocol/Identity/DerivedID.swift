package import FoundationEssentials
import Crypto

/// Deterministic ids: handling a redelivered message again produces the same ids, so later stages can deduplicate.
package enum DerivedID {
    /// The namespace of these ids; a constant of the protocol.
    package static let namespace = UUID(uuidString: "6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")!

    /// The id of one rule's notification to one recipient about one event.
    package static func notification(source: String, event: String, rule: String, recipient: UserID) -> UUID {
        uuid5(namespace, ["notification", source, event, rule, recipient.rawValue])
    }

    /// The id of a campaign's notification to one member of its audience.
    package static func notification(campaign: UUID, recipient: UserID) -> UUID {
        uuid5(campaign, ["member", recipient.rawValue])
    }

    /// The id of the `index`-th message with a rule's notifications about an event.
    package static func message(source: String, event: String, rule: String, index: Int) -> UUID {
        uuid5(namespace, ["message", source, event, rule, String(index)])
    }

    /// The `apns-id` of one notification on one device. For FCM it is the id in this project's records.
    package static func push(notification: UUID, device: UUID) -> UUID {
        // Computed for every target; twice as fast as ``uuid5(_:_:)``.
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

    /// The id of a registration. A changed token is a new registration.
    package static func device(
        app: AppID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken
    ) -> UUID {
        uuid5(namespace, ["device", app.rawValue, provider.rawValue, environment.rawValue, token.secret])
    }

    /// The id of the `index`-th message that a stage produces from the message `cause`.
    package static func caused(by cause: UUID, _ what: String, index: Int = 0) -> UUID {
        uuid5(cause, [what, String(index)])
    }

    /// UUID version 5 (RFC 9562 §5.5) of `parts` in `namespace`. Each part has a length prefix, so `["ab", "c"]` and
    /// `["a", "bc"]` differ.
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

    /// UUID version 5 of `word`, a NUL and the 16 bytes of each of `ids`, in `namespace`.
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
