import PushProtocol

extension APNsPayload {
    /// Encodes the payload without intermediate values, to the bytes of ``render(_:badge:)``. Returns `nil` for
    /// contents with overrides and for invalid ones.
    static func write(_ content: Content, badge: Int?) -> [UInt8]? {
        guard content.apns?.payload == nil, content.data?["aps"] == nil else { return nil }
        var json = ByteWriter(capacity: 512)
        if content.silent {
            json.put(#"{"aps":{"content-available":1}"#)
        } else {
            let badge = badge ?? content.badge
            guard badge.map({ $0 >= 0 }) ?? true, badge != nil || content.sound != nil || hasAlert(content) else {
                return nil
            }
            json.put(#"{"aps":"#)
            writeVisible(content, badge, to: &json)
        }
        writeData(content, to: &json)
        if !content.silent, let image = content.image {
            json.put(#","image":"#)
            json.string(image)
        }
        json.put("}")
        return json.bytes
    }

    private static func hasAlert(_ content: Content) -> Bool {
        content.title != nil || content.subtitle != nil || content.body != nil
    }

    private static func writeVisible(_ content: Content, _ badge: Int?, to json: inout ByteWriter) {
        var aps = ObjectWriter()
        if hasAlert(content) {
            aps.name(#""alert":"#, &json)
            var alert = ObjectWriter()
            alert.text(#""body":"#, content.body, &json)
            alert.text(#""subtitle":"#, content.subtitle, &json)
            alert.text(#""title":"#, content.title, &json)
            json.put("}")
        }
        if let badge {
            aps.name(#""badge":"#, &json)
            json.put(Int64(badge))
        }
        aps.text(#""category":"#, content.category, &json)
        aps.text(#""interruption-level":"#, content.interruptionLevel?.rawValue, &json)
        if content.image != nil { aps.name(#""mutable-content":1"#, &json) }
        aps.text(#""sound":"#, content.sound, &json)
        aps.text(#""thread-id":"#, content.thread, &json)
        json.put("}")
    }

    private static func writeData(_ content: Content, to json: inout ByteWriter) {
        guard let data = data(content) else { return }
        json.put(#","data":"#)
        json.object(data)
    }

    /// Writes an object whose members are optional.
    private struct ObjectWriter {
        private var isEmpty = true

        mutating func name(_ name: StaticString, _ json: inout ByteWriter) {
            json.put(isEmpty ? "{" : ",")
            isEmpty = false
            json.put(name)
        }

        mutating func text(_ name: StaticString, _ value: String?, _ json: inout ByteWriter) {
            guard let value else { return }
            self.name(name, &json)
            json.string(value)
        }
    }
}

extension APNsPayload {
    /// Encodes the payload of an encoded content by copying its members. Returns `nil` like the other overload.
    static func write(_ text: EncodedContent, badge: Int?) -> [UInt8]? {
        let members = text.members
        let badge = badge ?? text.badge
        guard !text.hasReservedData, badge.map({ $0 >= 0 }) ?? true,
            text.silent || badge != nil || !members.sound.isAbsent || members.hasAlert
        else { return nil }
        return text.withBytes { source in
            ByteWriter.bytes(expected: 320 + members.length) { json in
                json.put(#"{"aps":"#)
                if text.silent {
                    json.put(#"{"content-available":1}"#)
                } else {
                    writeVisible(members, badge, source, to: &json)
                }
                writeData(text, source, to: &json)
                if !text.silent, !members.image.isAbsent {
                    json.put(#","image":"#)
                    json.put(members.image, source)
                }
                json.put("}")
            }
        }
    }

    private static func writeVisible(
        _ members: EncodedContent.Members, _ badge: Int?, _ source: UnsafeBufferPointer<UInt8>,
        to json: inout ByteWriter
    ) {
        var separator: StaticString = "{"
        func text(_ name: StaticString, _ position: EncodedContent.FieldRange, _ json: inout ByteWriter) {
            guard !position.isAbsent else { return }
            json.put(separator)
            separator = ","
            json.put(name)
            json.put(position, source)
        }
        if members.hasAlert {
            json.put(#"{"alert":"#)
            text(#""body":"#, members.body, &json)
            text(#""subtitle":"#, members.subtitle, &json)
            text(#""title":"#, members.title, &json)
            json.put("}")
            separator = ","
        }
        if let badge {
            json.put(separator)
            separator = ","
            json.put(#""badge":"#)
            json.put(Int64(badge))
        }
        text(#""category":"#, members.category, &json)
        text(#""interruption-level":"#, members.interruptionLevel, &json)
        if !members.image.isAbsent {
            json.put(separator)
            separator = ","
            json.put(#""mutable-content":1"#)
        }
        text(#""sound":"#, members.sound, &json)
        text(#""thread-id":"#, members.thread, &json)
        json.put("}")
    }

    /// Writes the app's data, with `deep_link` in sorted order.
    private static func writeData(
        _ text: EncodedContent, _ source: UnsafeBufferPointer<UInt8>, to json: inout ByteWriter
    ) {
        let (data, link) = (text.members.data, text.members.deepLink)
        guard !data.isAbsent || !link.isAbsent else { return }
        json.put(#","data":"#)
        guard !link.isAbsent else { return json.put(data, source) }
        let before = data.isAbsent ? 0..<0 : data.range.lowerBound..<text.deepLinkOffset
        let after = data.isAbsent ? 0..<0 : text.deepLinkOffset..<data.range.upperBound
        if data.isAbsent { json.put("{") }
        json.put(UnsafeBufferPointer(rebasing: source[before]))
        // A length of 1 is a bracket only.
        if before.count > 1, after.count == 1 { json.put(",") }
        json.put(#""deep_link":"#)
        json.put(link, source)
        if after.count > 1 { json.put(",") }
        json.put(UnsafeBufferPointer(rebasing: source[after]))
        if data.isAbsent { json.put("}") }
    }
}
