import PushProtocol

extension DeviceToken {
    /// Enough of a token for a person to recognise it, too little to send with: its first four characters and its
    /// length.
    var masked: String { "\(secret.prefix(4))… (\(secret.utf8.count) characters)" }
}
