import Foundation

/// A client of the HTTP APIs of token-registry and rules, for one app on one device.
///
/// Create one client at the start of the app and keep it. All functions may be called from any task.
public final class HeliographClient: Sendable {
    /// The addresses of the two APIs, and the client's times.
    public struct Configuration: Sendable {
        /// The address of token-registry, such as `https://push.example.com/registry`.
        public var registry: URL
        /// The address of rules.
        public var rules: URL
        /// The address of events-api, for test pushes; nil if the app has none.
        public var events: URL?
        /// The time in seconds after which an unchanged registration is sent again, to refresh its last-seen time.
        public var refreshInterval: TimeInterval = 86_400
        /// The longest time in seconds without data from the server.
        public var timeout: TimeInterval = 30
        /// The number of attempts for a request of the inbox, preferences and presence.
        public var attempts = 3
        /// The number of attempts for a registration or a sign-out.
        public var registrationAttempts = 8

        /// Takes the addresses. The other members have defaults.
        public init(registry: URL, rules: URL, events: URL? = nil) {
            self.registry = registry
            self.rules = rules
            self.events = events
        }
    }

    /// Returns the user's bearer token. The argument is true after the server has refused the last one; the function
    /// then fetches a new token.
    public typealias BearerSource = @Sendable (_ isRefused: Bool) async throws -> String

    let connection: APIConnection
    let configuration: Configuration
    let registrar: Registrar
    let receiptOutbox: ReceiptOutbox
    let presenceKeeper: PresenceKeeper

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - configuration: The addresses.
    ///   - store: Keeps the installation id, the device tokens and unsent receipts across restarts.
    ///   - transport: Sends the requests. Tests pass their own.
    ///   - bearer: Returns the signed-in user's token.
    public convenience init(
        configuration: Configuration, store: any ClientStore, transport: any HTTPTransport = URLSessionTransport(),
        bearer: @escaping BearerSource
    ) {
        self.init(configuration: configuration, store: store, transport: transport, clock: .system, bearer: bearer)
    }

    init(
        configuration: Configuration, store: any ClientStore, transport: any HTTPTransport, clock: ClientClock,
        bearer: @escaping BearerSource
    ) {
        connection = APIConnection(
            transport: transport, bearer: bearer, timeout: configuration.timeout, clock: clock)
        self.configuration = configuration
        registrar = Registrar(connection: connection, configuration: configuration, store: store)
        receiptOutbox = ReceiptOutbox(connection: connection, rules: configuration.rules, store: store)
        presenceKeeper = PresenceKeeper(connection: connection, configuration: configuration)
    }
}

/// The time and the pauses of a client. Tests replace it.
struct ClientClock: Sendable {
    var now: @Sendable () -> Date
    var sleep: @Sendable (TimeInterval) async throws -> Void
    /// A number from 0 up to 1.
    var random: @Sendable () -> Double

    static let system = ClientClock(
        now: { Date() },
        sleep: { try await Task.sleep(nanoseconds: UInt64(max(0, $0) * 1_000_000_000)) },
        random: { Double.random(in: 0..<1) })
}
