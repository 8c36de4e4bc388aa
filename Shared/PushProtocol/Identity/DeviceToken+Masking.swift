extension DeviceToken {
    /// The first four characters and the length: enough to recognise a token, too little to send with.
    package var masked: String { "\(secret.prefix(4))… (\(secret.utf8.count) characters)" }
}
