import PushProtocol
import Yams

extension YAMLReader {
    /// - Parameter namesUser: whether the tokens name a user, in a claim that the entry may choose.
    mutating func bearer(_ entry: LocatedNode, of app: AppID, namesUser: Bool = true) -> BearerVerification? {
        let members = members(
            of: entry,
            known: [
                "algorithm", "key-file", "jwks-url", "issuer", "audience", "app-claim", "app-value", "leeway",
            ] + (namesUser ? ["user-claim"] : []), required: ["algorithm"])
        let algorithm = choice(members["algorithm"], of: BearerVerification.Algorithm.allCases)
        let keys = keys(entry, members, for: namesUser ? .bearer : .publishers)
        if algorithm == .hs256, let url = members["jwks-url"] {
            report(url, "HS256 needs a key-file: a shared secret must not be published")
        }
        let issuer = text(members["issuer"])
        let audience = text(members["audience"])
        let userClaim = text(members["user-claim"])
        let appClaim = text(members["app-claim"])
        let appValue = text(members["app-value"])
        let leeway = duration(members["leeway"], in: .zero ... .seconds(600))
        if let value = members["app-value"], members["app-claim"] == nil {
            report(value, "has no app-claim: name the claim to compare it with")
        }
        // A published key set usually signs tokens for other audiences too (RFC 8725 §3.9).
        if let url = members["jwks-url"], members["audience"] == nil, members["app-claim"] == nil {
            report(url, "requires an audience or an app-claim: its keys also sign tokens for others")
        }
        guard let algorithm, let keys else { return nil }
        return BearerVerification(
            algorithm: algorithm, keys: keys, issuer: issuer, audience: audience, userClaim: userClaim ?? "sub",
            appClaim: appClaim.map { .init($0, is: appValue ?? app.rawValue) }, leeway: leeway ?? .seconds(30))
    }

    private mutating func keys(
        _ entry: LocatedNode, _ members: [String: LocatedNode], for kind: AppCatalog.Files
    ) -> BearerVerification.KeySource? {
        switch (members["key-file"], members["jwks-url"]) {
        case (let file?, nil): return self.file(file, for: kind).map(BearerVerification.KeySource.file)
        case (nil, let url?): return httpURL(url).map(BearerVerification.KeySource.url)
        case (_?, let url?): report(url, "is set together with a key-file: set only one of them")
        case (nil, nil):
            // A node other than a mapping was already reported.
            if case .mapping = entry.node { report(entry, "“key-file” or “jwks-url” is missing") }
        }
        return nil
    }

    /// Reads an http(s) URL; the HTTPS client decides whether plain http is allowed.
    private mutating func httpURL(_ entry: LocatedNode) -> String? {
        guard let text = text(entry) else { return nil }
        if text.hasPrefix("https://") || text.hasPrefix("http://") { return text }
        report(entry, "“\(text)” is not an https URL")
        return nil
    }
}
