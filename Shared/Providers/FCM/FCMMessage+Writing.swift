import PushProtocol

extension FCMMessage {
    /// Encodes the message from an encoded content by copying its members, to the text of ``rendered``. Returns `nil`
    /// where decoding is needed, including all invalid contents.
    static func write(_ text: EncodedContent, badge: Int?, expiresAt: Timestamp?, now: Timestamp) -> JSONTemplate? {
        let members = text.members
        guard !text.hasReservedData, members.collapseKey.isAbsent else { return nil }
        let badge = badge ?? text.badge
        let ttl = expiresAt.map { Self.ttl(until: $0, now: now) }
        // Title, body, sound and category occur twice. A data value that is not a string is quoted and escaped.
        let size =
            600 + members.length + members.title.count + members.body.count + members.sound.count
            + members.category.count + 2 * members.data.count
        var placeholders = TextOffsets()
        var timeOffsets = TextOffsets()
        var payload = 0
        var isRefused = false
        let bytes = text.withBytes { source in
            ByteWriter.bytes(expected: size) { json in
                json.put(#"{"android":"#)
                writeAndroid(text, badge, ttl, source, &placeholders, &timeOffsets, to: &json)
                json.put(#","apns":"#)
                writeAPNs(text, badge, expiresAt, source, &placeholders, to: &json)
                let start = json.count
                isRefused = !writeData(text, source, to: &json)
                if !text.silent { writeNotification(members, source, to: &json) }
                // Includes the names `data` and `notification`, which do not count. Slightly too large messages take
                // the decoding path, which measures exactly.
                payload = json.count - start
                if let ttl {
                    json.put(#","webpush":{"headers":{"TTL":""#)
                    timeOffsets.append(json.count)
                    json.put(ttl)
                    json.put(#""}}"#)
                }
                json.put("}")
            }
        }
        guard !isRefused, payload <= FCMLimits.maximumPayload else { return nil }
        return JSONTemplate(bytes, placeholders: placeholders, timeOffsets: timeOffsets)
    }

    private static func writeAndroid(
        _ text: EncodedContent, _ badge: Int?, _ ttl: Int64?, _ source: UnsafeBufferPointer<UInt8>,
        _ placeholders: inout TextOffsets,
        _ timeOffsets: inout TextOffsets, to json: inout ByteWriter
    ) {
        let members = text.members
        json.put("{")
        if !text.silent {
            json.put(#""notification":{"#)
            if !members.category.isAbsent {
                json.put(#""channel_id":"#)
                json.put(members.category, source)
                json.put(",")
            }
            if let badge, badge > 0 {
                json.put(#""notification_count":"#)
                json.put(Int64(badge))
                json.put(",")
            }
            if let priority = text.interruptionLevel.flatMap(\.androidPriority) {
                json.put(#""notification_priority":""#)
                json.put(text: priority)
                json.put(#"","#)
            }
            if !members.sound.isAbsent {
                json.put(#""sound":"#)
                json.put(members.sound, source)
                json.put(",")
            }
            json.put(#""tag":""#)
            placeholders.append(json.count)
            json.put(#""},"#)
        }
        json.put(text.silent || text.interruptionLevel == .passive ? #""priority":"NORMAL""# : #""priority":"HIGH""#)
        if let ttl {
            json.put(#","ttl":""#)
            timeOffsets.append(json.count)
            json.put(ttl)
            json.put(#"s""#)
        }
        json.put("}")
    }

    private static func writeAPNs(
        _ text: EncodedContent, _ badge: Int?, _ expiresAt: Timestamp?, _ source: UnsafeBufferPointer<UInt8>,
        _ placeholders: inout TextOffsets, to json: inout ByteWriter
    ) {
        json.put(#"{"headers":{"apns-collapse-id":""#)
        placeholders.append(json.count)
        json.put("\"")
        if let expiresAt {
            json.put(#","apns-expiration":""#)
            json.put(expiresAt.seconds)
            json.put("\"")
        }
        if text.silent {
            json.put(#","apns-priority":"5","apns-push-type":"background"},"payload":{"aps":{"content-available":1}}}"#)
        } else {
            json.put("}")
            writeAps(text.members, badge, source, to: &json)
            json.put("}")
        }
    }

    private static func writeAps(
        _ members: EncodedContent.Members, _ badge: Int?, _ source: UnsafeBufferPointer<UInt8>,
        to json: inout ByteWriter
    ) {
        var aps = ObjectWriter(opening: #","payload":{"aps":{"#)
        if !members.subtitle.isAbsent {
            aps.name(#""alert":"#, &json)
            var alert = ObjectWriter(opening: "{")
            alert.text(#""body":"#, members.body, source, &json)
            alert.text(#""subtitle":"#, members.subtitle, source, &json)
            alert.text(#""title":"#, members.title, source, &json)
            json.put("}")
        }
        if let badge {
            aps.name(#""badge":"#, &json)
            json.put(Int64(badge))
        }
        aps.text(#""category":"#, members.category, source, &json)
        aps.text(#""interruption-level":"#, members.interruptionLevel, source, &json)
        if !members.image.isAbsent { aps.name(#""mutable-content":1"#, &json) }
        aps.text(#""sound":"#, members.sound, source, &json)
        aps.text(#""thread-id":"#, members.thread, source, &json)
        if !aps.isEmpty { json.put("}}") }
    }

    private static func writeNotification(
        _ members: EncodedContent.Members, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteWriter
    ) {
        var notification = ObjectWriter(opening: #","notification":{"#)
        notification.text(#""body":"#, members.body, source, &json)
        notification.text(#""image":"#, members.image, source, &json)
        notification.text(#""title":"#, members.title, source, &json)
        if !notification.isEmpty { json.put("}") }
    }

    /// Writes the app's data as a string map, with `deep_link` in sorted order. Returns `false` for a reserved name.
    private static func writeData(
        _ text: EncodedContent, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteWriter
    ) -> Bool {
        var data = ObjectWriter(opening: #","data":{"#)
        var link = text.members.deepLink
        var isTaken = true
        text.forEachDataMember(in: source) { name, value in
            if FCMLimits.isReserved(source, name) { isTaken = false }
            if !link.isAbsent, name.lowerBound > text.deepLinkOffset {
                data.text(#""deep_link":"#, link, source, &json)
                link = .none
            }
            data.name("\"", &json)
            json.put(source, name)
            json.put("\":")
            if source[value.lowerBound] == UInt8(ascii: "\"") {
                json.put(source, value)
            } else {
                json.putEscaped(source, value)
            }
        }
        data.text(#""deep_link":"#, link, source, &json)
        if !data.isEmpty { json.put("}") }
        return isTaken
    }

    /// Writes an object whose members are optional. Writes nothing without members. The caller closes it.
    private struct ObjectWriter {
        private let opening: StaticString
        private(set) var isEmpty = true

        init(opening: StaticString) { self.opening = opening }

        mutating func name(_ name: StaticString, _ json: inout ByteWriter) {
            json.put(isEmpty ? opening : ",")
            isEmpty = false
            json.put(name)
        }

        mutating func text(
            _ name: StaticString, _ position: EncodedContent.FieldRange, _ source: UnsafeBufferPointer<UInt8>,
            _ json: inout ByteWriter
        ) {
            guard !position.isAbsent else { return }
            self.name(name, &json)
            json.put(position, source)
        }
    }
}
