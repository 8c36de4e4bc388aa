import PushProtocol
import PushSending

extension APNsPayload {
    /// The bytes that ``render(_:badge:)`` would give, without the values in between; `nil` leaves it to that one. For
    /// contents that lay nothing over, and in which there is nothing to refuse.
    static func write(_ content: Content, badge: Int?) -> [UInt8]? {
        guard content.apns?.payload == nil, content.data?["aps"] == nil else { return nil }
        var json = JSONOutput(capacity: 512)
        if content.silent {
            json.raw(#"{"aps":{"content-available":1}"#)
        } else {
            let badge = badge ?? content.badge
            guard badge.map({ $0 >= 0 }) ?? true, badge != nil || content.sound != nil || hasAlert(content) else {
                return nil
            }
            json.raw(#"{"aps":"#)
            writeVisible(content, badge, to: &json)
        }
        writeData(content, to: &json)
        if !content.silent, let image = content.image {
            json.raw(#","image":"#)
            json.string(image)
        }
        json.raw("}")
        return json.bytes
    }

    private static func hasAlert(_ content: Content) -> Bool {
        content.title != nil || content.subtitle != nil || content.body != nil
    }

    private static func writeVisible(_ content: Content, _ badge: Int?, to json: inout JSONOutput) {
        var aps = Members()
        if hasAlert(content) {
            aps.name(#""alert":"#, &json)
            var alert = Members()
            alert.text(#""body":"#, content.body, &json)
            alert.text(#""subtitle":"#, content.subtitle, &json)
            alert.text(#""title":"#, content.title, &json)
            json.raw("}")
        }
        if let badge {
            aps.name(#""badge":"#, &json)
            json.integer(Int64(badge))
        }
        aps.text(#""category":"#, content.category, &json)
        aps.text(#""interruption-level":"#, content.interruptionLevel?.rawValue, &json)
        if content.image != nil { aps.name(#""mutable-content":1"#, &json) }
        aps.text(#""sound":"#, content.sound, &json)
        aps.text(#""thread-id":"#, content.thread, &json)
        json.raw("}")
    }

    private static func writeData(_ content: Content, to json: inout JSONOutput) {
        guard let data = data(content) else { return }
        json.raw(#","data":"#)
        json.object(data)
    }

    /// An object of which members may be absent.
    private struct Members {
        private var isEmpty = true

        mutating func name(_ name: StaticString, _ json: inout JSONOutput) {
            json.raw(isEmpty ? "{" : ",")
            isEmpty = false
            json.raw(name)
        }

        mutating func text(_ name: StaticString, _ value: String?, _ json: inout JSONOutput) {
            guard let value else { return }
            self.name(name, &json)
            json.string(value)
        }
    }
}
