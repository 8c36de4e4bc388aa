import PushProtocol
import PushSending

extension FCMMessage {
    /// The text that ``rendered`` would become, put together from a content that was not read: its members go into the
    /// message as they stand. `nil` leaves it to that one, such as whatever FCM would refuse.
    static func write(_ text: ContentText, badge: Int?, expiresAt: Timestamp?, now: Timestamp) -> JSONTemplate? {
        let members = text.members
        guard !text.hasReservedData, members.collapseKey.isAbsent else { return nil }
        let badge = badge ?? text.badge
        let ttl = expiresAt.map { Self.ttl(until: $0, now: now) }
        // Three of them stand there twice. A datum that is no string becomes one: quotes around it, and escapes in it.
        let limit =
            600 + members.length + members.title.count + members.body.count + members.sound.count
            + 2 * members.data.count
        var gaps = TextPlaces()
        var times = TextPlaces()
        var payload = 0
        var isRefused = false
        let bytes = text.bytes { source in
            ByteCursor.bytes(atMost: limit) { json in
                json.put(#"{"android":"#)
                writeAndroid(text, badge, ttl, source, &gaps, &times, to: &json)
                json.put(#","apns":"#)
                writeAPNs(text, badge, expiresAt, source, &gaps, to: &json)
                let start = json.count
                isRefused = !writeData(text, source, to: &json)
                if !text.silent { writeNotification(members, source, to: &json) }
                // With both names, which do not count: what is too long by no more than them, the other one decides.
                payload = json.count - start
                if let ttl {
                    json.put(#","webpush":{"headers":{"TTL":""#)
                    times.append(json.count)
                    json.put(ttl)
                    json.put(#""}}"#)
                }
                json.put("}")
            }
        }
        guard !isRefused, payload <= FCMLimits.maximumPayload else { return nil }
        return JSONTemplate(bytes, gaps: gaps, times: times)
    }

    private static func writeAndroid(
        _ text: ContentText, _ badge: Int?, _ ttl: Int64?, _ source: UnsafeBufferPointer<UInt8>,
        _ gaps: inout TextPlaces,
        _ times: inout TextPlaces, to json: inout ByteCursor
    ) {
        let members = text.members
        json.put("{")
        if !text.silent {
            json.put(#""notification":{"#)
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
            gaps.append(json.count)
            json.put(#""},"#)
        }
        json.put(text.silent || text.interruptionLevel == .passive ? #""priority":"NORMAL""# : #""priority":"HIGH""#)
        if let ttl {
            json.put(#","ttl":""#)
            times.append(json.count)
            json.put(ttl)
            json.put(#"s""#)
        }
        json.put("}")
    }

    private static func writeAPNs(
        _ text: ContentText, _ badge: Int?, _ expiresAt: Timestamp?, _ source: UnsafeBufferPointer<UInt8>,
        _ gaps: inout TextPlaces, to json: inout ByteCursor
    ) {
        json.put(#"{"headers":{"apns-collapse-id":""#)
        gaps.append(json.count)
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
        _ members: ContentText.Members, _ badge: Int?, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteCursor
    ) {
        var aps = Members(opening: #","payload":{"aps":{"#)
        if !members.subtitle.isAbsent {
            aps.name(#""alert":"#, &json)
            var alert = Members(opening: "{")
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
        _ members: ContentText.Members, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteCursor
    ) {
        var notification = Members(opening: #","notification":{"#)
        notification.text(#""body":"#, members.body, source, &json)
        notification.text(#""image":"#, members.image, source, &json)
        notification.text(#""title":"#, members.title, source, &json)
        if !notification.isEmpty { json.put("}") }
    }

    /// The app's own data as a string map, with the link in its place. Returns whether FCM takes the names.
    private static func writeData(
        _ text: ContentText, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteCursor
    ) -> Bool {
        var data = Members(opening: #","data":{"#)
        var link = text.members.deepLink
        var isTaken = true
        text.eachDatum(in: source) { name, value in
            if FCMLimits.isReserved(source, name) { isTaken = false }
            if !link.isAbsent, name.lowerBound > text.placeOfLink {
                data.text(#""deep_link":"#, link, source, &json)
                link = .none
            }
            data.name("\"", &json)
            json.put(source, name)
            json.put("\":")
            if source[value.lowerBound] == UInt8(ascii: "\"") {
                json.put(source, value)
            } else {
                json.putQuoted(source, value)
            }
        }
        data.text(#""deep_link":"#, link, source, &json)
        if !data.isEmpty { json.put("}") }
        return isTaken
    }

    /// An object of which members may be absent, and which is absent without any. Whoever writes it closes it.
    private struct Members {
        private let opening: StaticString
        private(set) var isEmpty = true

        init(opening: StaticString) { self.opening = opening }

        mutating func name(_ name: StaticString, _ json: inout ByteCursor) {
            json.put(isEmpty ? opening : ",")
            isEmpty = false
            json.put(name)
        }

        mutating func text(
            _ name: StaticString, _ place: ContentText.Place, _ source: UnsafeBufferPointer<UInt8>,
            _ json: inout ByteCursor
        ) {
            guard !place.isAbsent else { return }
            self.name(name, &json)
            json.put(place, source)
        }
    }
}
