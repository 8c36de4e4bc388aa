import HTTPAuth
import HTTPTypes
import PushProtocol
import RegistryStore

/// Registers and ends single tokens, for a user's client and for a backend with an API key.
struct DeviceRegistrar: Sendable {
    private let store: RegistrationStore
    private let memberships: MembershipStore
    private let registering: GroupCommit

    init(store: RegistrationStore) {
        self.store = store
        memberships = MembershipStore(store.database)
        registering = GroupCommit { try await store.registerReturningNew($0).arrived }
    }

    /// Registers a token, and subscribes its user to the body's `type`.
    ///
    /// - Returns: whether the device is new to the user.
    func register(
        _ body: RegistrationBody, of owner: AppUser, on installation: InstallationID?
    ) async throws -> Bool {
        // First, so that nothing is registered if the user cannot join the topic.
        if let topic = body.topic { try await join(topic, owner) }
        do {
            return try await registering.register(body.claim(of: owner, on: installation))
        } catch is GroupCommit.Full {
            throw APIError.busy
        }
    }

    /// Signs a user out of a token, and removes the user from the topic of the body's `type`.
    ///
    /// - Returns: the number of changed registrations.
    func unregister(
        _ body: RegistrationBody, of owner: AppUser, on installation: InstallationID?
    ) async throws -> Int {
        if let topic = body.topic {
            try await memberships.apply([change(topic, owner, joins: false)])
        }
        return try await store.unregister([body.claim(of: owner, on: installation)], notesUnknown: false)
    }

    private func join(_ topic: GroupName, _ owner: AppUser) async throws {
        guard try await memberships.apply([change(topic, owner, joins: true)]) == 1 else {
            throw APIError.tooManyGroups
        }
    }

    private func change(_ topic: GroupName, _ owner: AppUser, joins: Bool) -> MembershipStore.Change {
        .init(app: owner.app, change: MembershipChange(user: owner.user, group: .topic(topic), joins: joins))
    }
}

extension RegistrationBody {
    /// The registration request of this body.
    fileprivate func claim(of owner: AppUser, on installation: InstallationID?) -> RegistrationRequest {
        var claim = RegistrationRequest(
            app: owner.app, user: owner.user, provider: provider, environment: environment, token: token,
            installation: installation)
        if provider == .fcm { claim.platform = .android }
        return claim
    }
}

extension APIError {
    /// The user has the maximum of topics and tags.
    static let tooManyGroups = APIError(
        status: .unprocessableContent,
        message:
            """
            you have \(MembershipStore.mostGroups) topics and tags, the maximum, or \
            \(MembershipStore.mostRemembered) including those left recently; leave one, or try again later
            """)
}
