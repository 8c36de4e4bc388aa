/// The checks of the request line and of each header alone (push-protocols A.4).
extension APNsReview {
    func checkMethod() throws(APNsRefusal) {
        guard push.request.method == "POST" else { throw APNsRefusal(.methodNotAllowed, "the method is not POST") }
    }

    func checkPath() throws(APNsRefusal) {
        guard let token = push.token else { throw APNsRefusal(.badPath, "the path is not /3/device/<token>") }
        guard !token.isEmpty else { throw APNsRefusal(.missingDeviceToken, "nothing follows /3/device/") }
    }

    func checkRepeatedHeaders() throws(APNsRefusal) {
        if let name = push.repeated { throw APNsRefusal(.duplicateHeaders, "\(name) comes more than once") }
    }

    func checkID() throws(APNsRefusal) {
        guard let id = push.id else { return }
        guard Self.isCanonicalUUID(id) else { throw APNsRefusal(.badMessageID, "apns-id is not a UUID 8-4-4-4-12") }
    }

    func checkExpiration() throws(APNsRefusal) {
        guard let expiration = push.expiration else { return }
        guard let seconds = Int64(expiration), seconds >= 0 else {
            throw APNsRefusal(.badExpirationDate, "apns-expiration is not a count of Unix seconds")
        }
    }

    func checkPriority() throws(APNsRefusal) {
        switch push.priority {
        case nil, "10", "5", "1": return
        default: throw APNsRefusal(.badPriority, "apns-priority is not 10, 5 or 1")
        }
    }

    mutating func checkPushType() throws(APNsRefusal) {
        guard let name = push.pushType else { return }
        guard let type = APNsPushType(rawValue: name) else {
            throw APNsRefusal(.invalidPushType, "apns-push-type is none of the documented types")
        }
        self.type = type
    }

    func checkCollapseID() throws(APNsRefusal) {
        guard let size = push.collapseID?.utf8.count, size > 64 else { return }
        throw APNsRefusal(.badCollapseID, "apns-collapse-id has \(size) bytes; at most 64 are allowed")
    }

    mutating func checkAuthorization() throws(APNsRefusal) {
        // A certificate speaks for itself, and what the header says besides is ignored (A.4).
        if push.request.hasClientCertificate { return }
        guard let authorization = push.authorization else {
            throw APNsRefusal(.missingProviderToken, "there is no authorization header")
        }
        key = try connection.admit(authorization, apps: apps, environment: environment, now: now)
    }

    static func isCanonicalUUID(_ text: String) -> Bool {
        guard text.utf8.count == 36 else { return false }
        for (index, byte) in text.utf8.enumerated() {
            switch index {
            case 8, 13, 18, 23: guard byte == UInt8(ascii: "-") else { return false }
            default: guard Character(Unicode.Scalar(byte)).isHexDigit else { return false }
            }
        }
        return true
    }
}
