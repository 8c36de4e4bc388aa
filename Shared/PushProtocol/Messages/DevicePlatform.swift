/// On what an app runs that is registered with FCM, which delivers to both. Spelled as the mobile clients spell it.
package enum DevicePlatform: String, Codable, Hashable, Sendable, CaseIterable {
    case ios
    case android
}
