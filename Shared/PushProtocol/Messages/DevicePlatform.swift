/// The platform of an app registered with FCM, spelled as mobile clients spell it.
package enum DevicePlatform: String, Codable, Hashable, Sendable, CaseIterable {
    case ios
    case android
}
