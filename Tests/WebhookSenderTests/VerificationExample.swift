import Crypto
import Foundation

func isAuthentic(headers: [String: String], body: Data, secret: String, now: Date = Date()) -> Bool {
    guard let id = headers["webhook-id"], let time = headers["webhook-timestamp"], let seconds = Double(time),
        let key = Data(base64Encoded: String(secret.dropFirst("whsec_".count))),
        abs(now.timeIntervalSince1970 - seconds) <= 300
    else { return false }
    let content = Data("\(id).\(time).".utf8) + body
    return (headers["webhook-signature"] ?? "").split(separator: " ").contains { given in
        guard given.hasPrefix("v1,"), let code = Data(base64Encoded: String(given.dropFirst(3))) else { return false }
        return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: content, using: SymmetricKey(data: key))
    }
}
