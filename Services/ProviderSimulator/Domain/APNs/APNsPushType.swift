/// The values of `apns-push-type`, with their topic suffix and size limit (ProviderFacts.md §A.5, §A.6).
enum APNsPushType: String, CaseIterable, Sendable {
    case alert, background, voip, complication, fileprovider, mdm, liveactivity, location, pushtotalk, widgets, controls

    /// The suffix after the bundle id in the topic.
    var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .location: ".location-query"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// In bytes.
    var maximumBodySize: Int { self == .voip ? 5120 : 4096 }
}

/// A topic split into the app's bundle id and the suffix of a push type.
struct APNsTopic: Hashable, Sendable {
    let bundle: String
    let suffix: String

    static let suffixes = Set(APNsPushType.allCases.map(\.topicSuffix)).subtracting([""])

    /// Takes the whole topic as the bundle id if `bundles` contains it: an app may be called `com.example.voip`.
    init(_ topic: String, among bundles: Set<String>) {
        if !bundles.contains(topic), let suffix = Self.suffixes.first(where: topic.hasSuffix) {
            bundle = String(topic.dropLast(suffix.count))
            self.suffix = suffix
        } else {
            bundle = topic
            suffix = ""
        }
    }

    /// Letters, digits, dots, hyphens and underscores.
    static func isWellFormed(_ topic: String) -> Bool {
        (1...255).contains(topic.utf8.count)
            && topic.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
