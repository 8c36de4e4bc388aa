import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// The registry's schema in a database for each test.
enum StoreFixture {
    static func withStore<R: Sendable>(
        devicesPerUser: Int = RegistrationStore.defaultDevicesPerUser, tokens: TokenKeys = .none,
        _ body: (RegistrationStore, PostgresPool) async throws -> R
    ) async throws -> R {
        try await TestSchema.registry.withPool { pool in
            try await body(RegistrationStore(pool, tokens: tokens, devicesPerUser: devicesPerUser), pool)
        }
    }

    static let app = AppID(rawValue: "family-portal")!

    static func claim(
        _ user: String, _ token: String, _ provider: Provider = .apns, app: AppID = app,
        environment: ProviderEnvironment = .production, kind: RegistrationKind? = nil, on installation: String? = nil,
        scope: String? = nil, at: Timestamp? = nil
    ) -> RegistrationRequest {
        RegistrationRequest(
            app: app, user: UserID(rawValue: user)!, provider: provider, environment: environment,
            token: DeviceToken(secret: token), kind: kind,
            installation: installation.map { InstallationID(rawValue: $0)! },
            scope: scope, at: at)
    }

    static func user(_ name: String, app: AppID = app) -> AppUser { AppUser(app: app, user: UserID(rawValue: name)!) }
}

extension RegistrationStore {
    /// A user's device history; all rows must be readable.
    func records(of user: AppUser) async throws -> [RegistrationRecord] {
        try await history(of: user).map { try #require($0.record) }
    }

    /// The tokens of pushes to the user.
    func tokens(of user: String, app: AppID = StoreFixture.app) async throws -> [String] {
        let key = StoreFixture.user(user, app: app)
        return try await devices(of: [key])[0].map(\.token.secret).sorted()
    }
}
