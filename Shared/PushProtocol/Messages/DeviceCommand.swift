package import FoundationEssentials

/// A command to the registry. Exchange `devices`, routing key `command.<verb>.<app>`, or `command.<verb>` for
/// publishers with access to all apps.
package struct DeviceCommand: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.device-command"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var command: Command

    package init(trace: Trace, app: AppID, command: Command) {
        self.trace = trace
        self.app = app
        self.command = command
    }

    package enum Command: Hashable, Sendable {
        /// Registers a user's token.
        case register(RegistrationPayload)
        /// Unregisters a user's token, for registrations up to `at`; absent: until the registry processes the
        /// command.
        case unregister(
            user: UserID, provider: Provider, environment: ProviderEnvironment, token: DeviceToken, at: Timestamp?)
        /// Deactivates a registration that a provider reported as gone, unless it was registered again after
        /// `notRegisteredSince` (compare and clear).
        case deactivate(device: UUID, notRegisteredSince: Timestamp, reason: String)
        /// Marks a FID as suspect: at `at` the provider rejected it and accepted a registration token of the same
        /// installation.
        case suspect(device: UUID, at: Timestamp, reason: String)
        /// Moves the registration to the other environment.
        case correct(device: UUID, environment: ProviderEnvironment)
        /// Adds a user to a topic or tag, or removes them.
        case membership(MembershipChange)
        /// Cancels a campaign whose event was revoked.
        case cancel(campaign: UUID)
    }

    package var routingKey: String { "command.\(command.verb.rawValue).\(app.rawValue)" }
}

extension DeviceCommand.Command {
    package enum Verb: String, Codable, Sendable, CaseIterable {
        case register, unregister, deactivate, suspect, correct, subscribe, unsubscribe, tag, untag, cancel
    }

    package var verb: Verb {
        switch self {
        case .register: .register
        case .unregister: .unregister
        case .deactivate: .deactivate
        case .suspect: .suspect
        case .correct: .correct
        case .membership(let change): change.verb
        case .cancel: .cancel
        }
    }
}

extension DeviceCommand.Command: Codable {
    private enum CodingKeys: String, CodingKey {
        case verb, user, provider, environment, token, at, device, notRegisteredSince, reason, campaign
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func value<T: Decodable>(_ key: CodingKeys, as: T.Type = T.self) throws -> T {
            try container.decode(T.self, forKey: key)
        }
        switch try value(.verb, as: Verb.self) {
        case .register: self = .register(try RegistrationPayload(from: decoder))
        case .unregister:
            self = .unregister(
                user: try value(.user), provider: try value(.provider), environment: try value(.environment),
                token: try value(.token), at: try container.decodeIfPresent(Timestamp.self, forKey: .at))
        case .deactivate:
            self = .deactivate(
                device: try value(.device), notRegisteredSince: try value(.notRegisteredSince),
                reason: try value(.reason))
        case .suspect:
            self = .suspect(device: try value(.device), at: try value(.at), reason: try value(.reason))
        case .correct: self = .correct(device: try value(.device), environment: try value(.environment))
        case .subscribe, .unsubscribe, .tag, .untag: self = .membership(try MembershipChange(from: decoder))
        case .cancel: self = .cancel(campaign: try value(.campaign))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(verb, forKey: .verb)
        switch self {
        case .register(let registrant): try registrant.encode(to: encoder)
        case .unregister(let user, let provider, let environment, let token, let at):
            try container.encode(user, forKey: .user)
            try container.encode(provider, forKey: .provider)
            try container.encode(environment, forKey: .environment)
            try container.encode(token, forKey: .token)
            try container.encodeIfPresent(at, forKey: .at)
        case .deactivate(let device, let notRegisteredSince, let reason):
            try container.encode(device, forKey: .device)
            try container.encode(notRegisteredSince, forKey: .notRegisteredSince)
            try container.encode(reason, forKey: .reason)
        case .suspect(let device, let at, let reason):
            try container.encode(device, forKey: .device)
            try container.encode(at, forKey: .at)
            try container.encode(reason, forKey: .reason)
        case .correct(let device, let environment):
            try container.encode(device, forKey: .device)
            try container.encode(environment, forKey: .environment)
        case .membership(let change): try change.encode(to: encoder)
        case .cancel(let campaign): try container.encode(campaign, forKey: .campaign)
        }
    }
}
