/// The id of an APNs broadcast channel, in base64, as APNs returned it on creation (Apple: Sending channel management
/// requests to APNs).
package struct ChannelID: ValidatedString {
    package static let rule = "a channel's id is the base64 that APNs gave it when it was created"

    package let rawValue: String

    package init?(rawValue: String) {
        guard (1...128).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(Self.isBase64) else { return nil }
        self.rawValue = rawValue
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
            true
        default: false
        }
    }
}
