/// The checks of the request line and of single headers (ProviderFacts.md §A.4).
extension APNsRequestValidator {
    func checkMethod() throws(APNsRejection) {
        guard push.request.method == "POST" else { throw APNsRejection(.methodNotAllowed, "the method is not POST") }
    }

    func checkPath() throws(APNsRejection) {
        guard let token = push.token else { throw APNsRejection(.badPath, "the path is not /3/device/<token>") }
        guard !token.isEmpty else { throw APNsRejection(.missingDeviceToken, "nothing follows /3/device/") }
    }

    func checkRepeatedHeaders() throws(APNsRejection) {
        if let name = push.repeated { throw APNsRejection(.duplicateHeaders, "\(name) comes more than once") }
    }

    func checkID() throws(APNsRejection) {
        guard let id = push.id else { return }
        guard Self.isCanonicalUUID(id) else { throw APNsRejection(.badMessageID, "apns-id is not a UUID 8-4-4-4-12") }
    }

    func checkExpiration() throws(APNsRejection) {
        guard let expiration = push.expiration else { return }
        guard let seconds = Int64(expiration), seconds >= 0 else {
            throw APNsRejection(.badExpirationDate, "apns-expiration is not a count of Unix seconds")
        }
    }

    func checkPriority() throws(APNsRejection) {
        switch push.priority {
        case nil, "10", "5", "1": return
        default: throw APNsRejection(.badPriority, "apns-priority is not 10, 5 or 1")
        }
    }

    mutating func checkPushType() throws(APNsRejection) {
        guard let name = push.pushType else { return }
        guard let type = APNsPushType(rawValue: name) else {
            throw APNsRejection(.invalidPushType, "apns-push-type is none of the documented types")
        }
        self.type = type
    }

    func checkCollapseID() throws(APNsRejection) {
        guard let size = push.collapseID?.utf8.count, size > 64 else { return }
        throw APNsRejection(.badCollapseID, "apns-collapse-id has \(size) bytes; at most 64 are allowed")
    }

    mutating func checkAuthorization() throws(APNsRejection) {
        // With a client certificate, APNs ignores the authorization header (ProviderFacts.md §A.4).
        if push.request.hasClientCertificate { return }
        guard let authorization = push.authorization else {
            throw APNsRejection(.missingProviderToken, "there is no authorization header")
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
