import FoundationEssentials
import HTTPTypes
import Hummingbird

/// Reads and writes the cookies of sessions and of sign-ins in progress, and the tokens of forms.
struct SessionKeeper: Sendable {
    let address: ConsoleAddress
    let lifetime: Duration
    private let sessions: Seal
    private let signIns: Seal
    private let forms: Seal
    private let now: @Sendable () -> Date

    /// The time to sign in at the issuer.
    private static let signInTime = 600

    init(
        secret: String, address: ConsoleAddress, lifetime: Duration, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.address = address
        self.lifetime = lifetime
        self.now = now
        sessions = Seal(secret: secret, purpose: .session)
        signIns = Seal(secret: secret, purpose: .signIn)
        forms = Seal(secret: secret, purpose: .form)
    }

    func session(of request: Request) -> Session? {
        request.cookie(named: name("session")).flatMap { sessions.value(of: $0, now: now()) }.flatMap(Session.init)
    }

    /// The value of `Set-Cookie` for a session, or for its end.
    func cookie(for session: Session?) -> String {
        guard let session else { return cookie("session", "", seconds: 0) }
        let seconds = Int(lifetime.components.seconds)
        let until = now().addingTimeInterval(Double(seconds))
        return cookie("session", sessions.text(of: session.value, until: until), seconds: seconds)
    }

    func signIn(of request: Request) -> SignIn? {
        request.cookie(named: name("sign-in")).flatMap { signIns.value(of: $0, now: now()) }.flatMap(SignIn.init)
    }

    func cookie(for signIn: SignIn?) -> String {
        guard let signIn else { return cookie("sign-in", "", seconds: 0) }
        let until = now().addingTimeInterval(Double(Self.signInTime))
        return cookie("sign-in", signIns.text(of: signIn.value, until: until), seconds: Self.signInTime)
    }

    /// The token that each form of a session sends, against requests from other sites.
    func formToken(of session: Session) -> String { forms.code(of: session.id) }

    func isFormToken(_ token: String, of session: Session) -> Bool { forms.isCode(token, of: session.id) }

    /// With https the prefix `__Host-` keeps other hosts of the domain from setting the cookie (RFC 6265bis §4.1.3.2).
    private func name(_ kind: String) -> String { (address.isSecure ? "__Host-" : "") + "heliograph-\(kind)" }

    private func cookie(_ kind: String, _ value: String, seconds: Int) -> String {
        "\(name(kind))=\(value); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Lax"
            + (address.isSecure ? "; Secure" : "")
    }
}

extension Request {
    fileprivate func cookie(named name: String) -> String? {
        for header in headers[values: .cookie] {
            for pair in header.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2, parts[0].trimmingPrefix(while: \.isWhitespace) == name { return String(parts[1]) }
            }
        }
        return nil
    }
}
