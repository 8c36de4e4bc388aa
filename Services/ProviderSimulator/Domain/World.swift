/// What the providers share: who exists, what was scripted, and how the wire behaves.
struct World: Sendable {
    let keys: KeyRing
    let registrations = Registrations()
    let outcomes = OutcomeBook()
    let handshakes = HandshakeBook()
    let accessTokens = AccessTokens()
    let allowances = Allowances()
    let topics = TopicBook()
    /// Concurrent streams on an APNs connection once a provider token has proved itself.
    var apnsStreams = 1000
    /// Whether APNs device tokens that begin with `51` play the scenario they spell (push-protocols D.4).
    var readsTokenPrefixes = false
    /// How long access tokens are good for, in seconds.
    var accessTokenLifetime: Int64 = 3599

    init(apps: KnownApps) { keys = KeyRing(apps) }

    var apps: KnownApps { keys.apps }
}
