extension DeviceToken {
    /// The first four characters and the length, for logs.
    package var masked: String { "\(secret.prefix(4))… (\(secret.utf8.count) characters)" }
}
