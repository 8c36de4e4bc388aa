package import FoundationEssentials
package import PushProtocol
import Metrics
import Postgres

// Stored as text. Table constraints hold the values, so decoding fails only with a schema newer than this build.
extension AppID: PostgresValue {}
extension UserID: PostgresValue {}
extension InstallationID: PostgresValue {}
extension Provider: PostgresValue {}
extension ProviderEnvironment: PostgresValue {}
extension RegistrationKind: PostgresValue {}
extension RegistrationState: PostgresValue {}
extension DevicePlatform: PostgresValue {}

extension Registration {
    /// The columns that ``init(_:of:_:)`` reads by position. Without app and user, which the caller knows already.
    static let columnsWithoutOwner: SQL = """
        r.device_id, r.provider, r.environment, coalesce(r.token, ''), r.kind, r.installation, r.scope, r.topic,
        r.registered_at, least(r.registered_at, r.state_changed_at) <= statement_timestamp() - interval '1 day',
        CASE WHEN r.kind = 'fid' THEN r.app_version END,
        r.suspected_at IS NOT NULL AND r.suspected_at > statement_timestamp() - \(FIDCohortRule.window)::interval,
        r.provider = 'fcm' AND r.platform = 'ios'
        """
    static let columnsWithoutOwnerCount = 13

    /// Decodes a row of a known user and decrypts its token.
    ///
    /// - Throws: an error of the row, or a ``TokenCipher/DecryptionError``.
    init(_ row: PostgresRow, of owner: AppUser, _ tokens: TokenKeys) throws {
        try self.init(stored: row, of: owner)
        token = try tokens.open(token.secret, device: device, app: app)
    }

    /// Decodes a row without decryption: `token` holds the stored text.
    fileprivate init(stored row: PostgresRow, of owner: AppUser) throws(PostgresError) {
        self.init(
            device: try row.decode(UUID.self, at: 0), app: owner.app, user: owner.user,
            provider: try row.decode(Provider.self, at: 1),
            environment: try row.decode(ProviderEnvironment.self, at: 2),
            token: DeviceToken(secret: try row.decode(String.self, at: 3)),
            kind: try row.decode(RegistrationKind?.self, at: 4),
            installation: try row.decode(InstallationID?.self, at: 5), scope: try row.decode(String?.self, at: 6),
            topic: try row.decode(String?.self, at: 7), registeredAt: Timestamp(try row.decode(Date.self, at: 8)))
        isEstablished = try row.decode(Bool.self, at: 9)
        appVersion = try row.decode(String?.self, at: 10)
        isSuspected = try row.decode(Bool.self, at: 11)
        isAppleByFCM = try row.decode(Bool?.self, at: 12) ?? false
    }

    /// The columns that ``init(_:)`` reads.
    static let columns: SQL = "\(columnsWithoutOwner), r.app, r.user_id"

    init(_ row: PostgresRow, _ tokens: TokenKeys) throws {
        try self.init(row, of: try Self.owner(row), tokens)
    }

    fileprivate static func owner(_ row: PostgresRow) throws(PostgresError) -> AppUser {
        AppUser(
            app: try row.decode(AppID.self, at: columnsWithoutOwnerCount),
            user: try row.decode(UserID.self, at: columnsWithoutOwnerCount + 1)
        )
    }
}

/// A registration with its state and all device data, as operators see it. The token is empty if the registration is
/// erased or the token cannot be decrypted.
package struct RegistrationRecord: Hashable, Sendable {
    package var registration: Registration
    package var state: RegistrationState
    package var reason: String?
    package var changedAt: Date
    package var staleSince: Date?
    package var locale: String?
    package var timeZone: String?
    package var appVersion: String?
    package var platform: DevicePlatform?

    package var scope: String? { registration.scope }
}

extension RegistrationRecord {
    static let columns: SQL = """
        \(Registration.columns), r.state, r.state_reason, r.state_changed_at, r.stale_since, r.locale, r.time_zone,
        r.app_version, r.platform
        """

    init(_ row: PostgresRow, _ tokens: TokenKeys) throws(PostgresError) {
        let next = Registration.columnsWithoutOwnerCount + 2
        var registration = try Registration(stored: row, of: try Registration.owner(row))
        let token = try? tokens.open(registration.token.secret, device: registration.device, app: registration.app)
        registration.token = token ?? DeviceToken(secret: "")
        self.init(
            registration: registration, state: try row.decode(RegistrationState.self, at: next),
            reason: try row.decode(String?.self, at: next + 1), changedAt: try row.decode(Date.self, at: next + 2),
            staleSince: try row.decode(Date?.self, at: next + 3), locale: try row.decode(String?.self, at: next + 4),
            timeZone: try row.decode(String?.self, at: next + 5),
            appVersion: try row.decode(String?.self, at: next + 6),
            platform: try row.decode(DevicePlatform?.self, at: next + 7))
    }
}

/// One row of a user's device history.
package enum HistoryEntry: Hashable, Sendable {
    case record(RegistrationRecord)
    /// A row that this build cannot read. The reason names the column, without its value.
    case unreadable(device: UUID?, reason: String)

    /// - Parameter row: has ``RegistrationRecord/columns``.
    init(_ row: PostgresRow, _ tokens: TokenKeys, of app: AppID) {
        do throws(PostgresError) {
            self = .record(try RegistrationRecord(row, tokens))
        } catch {
            UnreadableRegistrations.count(of: app)
            self = .unreadable(device: try? row.decode(UUID.self, at: 0), reason: error.detail)
        }
    }

    /// `nil` for an unreadable row.
    package var record: RegistrationRecord? {
        switch self {
        case .record(let record): record
        case .unreadable: nil
        }
    }
}

enum UnreadableRegistrations {
    /// Returns the registration that `read` decodes. If `read` throws, counts an unreadable registration of the app and
    /// returns `nil`. So one row does not fail the other users of a batch.
    static func readOrSkip(of app: AppID, _ read: () throws -> Registration) -> Registration? {
        do { return try read() } catch {
            count(of: app)
            return nil
        }
    }

    fileprivate static func count(of app: AppID) {
        Counter(
            label: "heliograph_registry_unreadable_registrations_total", dimensions: [("app", app.rawValue)]
        ).increment()
    }
}
