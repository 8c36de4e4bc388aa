import PushProtocol
import Yams

extension YAMLReader {
    mutating func bearer(_ entry: Entry, of app: AppID) -> BearerVerification? {
        let members = members(
            of: entry,
            known: [
                "algorithm", "key-file", "jwks-url", "issuer", "audience", "user-claim", "app-claim", "app-value",
                "leeway",
            ], required: ["algorithm"])
        let algorithm = choice(members["algorithm"], of: BearerVerification.Algorithm.allCases)
        let keys = keys(entry, members)
        if algorithm == .hs256, let url = members["jwks-url"] {
            report(url, "a shared secret is not published: HS256 takes a key-file")
        }
        let issuer = text(members["issuer"])
        let audience = text(members["audience"])
        let userClaim = text(members["user-claim"])
        let appClaim = text(members["app-claim"])
        let appValue = text(members["app-value"])
        let leeway = duration(members["leeway"], in: .zero ... .seconds(600))
        if let value = members["app-value"], members["app-claim"] == nil {
            report(value, "says what no claim is compared with: name one as app-claim")
        }
        // Whoever publishes keys signs for others with them too (RFC 8725 §3.9).
        if let url = members["jwks-url"], members["audience"] == nil, members["app-claim"] == nil {
            report(url, "needs an audience or an app-claim beside it: its keys sign tokens of others too")
        }
        guard let algorithm, let keys else { return nil }
        return BearerVerification(
            algorithm: algorithm, keys: keys, issuer: issuer, audience: audience, userClaim: userClaim ?? "sub",
            appClaim: appClaim.map { .init($0, is: appValue ?? app.rawValue) }, leeway: leeway ?? .seconds(30))
    }

    private mutating func keys(_ entry: Entry, _ members: [String: Entry]) -> BearerVerification.Keys? {
        switch (members["key-file"], members["jwks-url"]) {
        case (let file?, nil): return self.file(file, for: .bearer).map(BearerVerification.Keys.file)
        case (nil, let url?): return webAddress(url).map(BearerVerification.Keys.url)
        case (_?, let url?): report(url, "stands beside a key-file: one of the two")
        case (nil, nil):
            // What is not even a mapping has been reported as that.
            if case .mapping = entry.node { report(entry, "“key-file” or “jwks-url” is missing") }
        }
        return nil
    }

    /// Whether plain http is allowed there is for whoever connects to say.
    private mutating func webAddress(_ entry: Entry) -> String? {
        guard let text = text(entry) else { return nil }
        if text.hasPrefix("https://") || text.hasPrefix("http://") { return text }
        report(entry, "“\(text)” is not an https URL")
        return nil
    }
}
