/// The state that the providers share: credentials, scripts, limits and settings.
struct SimulatorState: Sendable {
    let keys: AcceptedKeys
    let pinnedTokens = PinnedTokens()
    let outcomes = ScriptedOutcomeStore()
    let handshakes = HandshakeFaults()
    let accessTokens = AccessTokens()
    let rateLimits = RateLimits()
    let topics = TopicSubscribers()
    let subscriptions = BrowserSubscriptions()
    /// The push service of new subscriptions.
    var webPushOrigin = "https://localhost"
    /// Concurrent streams on an APNs connection after its first accepted push.
    var apnsStreams = 1000
    /// Whether APNs device tokens that start with `51` play the scenario they encode.
    var readsTokenPrefixes = false
    /// The lifetime of access tokens, in seconds.
    var accessTokenLifetime: Int64 = 3599

    init(apps: KnownApps) { keys = AcceptedKeys(apps) }

    var apps: KnownApps { keys.apps }
}
