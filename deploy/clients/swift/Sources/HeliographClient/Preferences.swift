import Foundation

/// A user's notification settings.
public struct Preferences: Decodable, Sendable {
    /// A switch for each channel.
    public struct Channels: Decodable, Hashable, Sendable {
        /// Whether the user gets pushes.
        public let push: Bool
        /// Whether the open app shows new inbox items.
        public let banner: Bool
        /// Whether the inbox keeps notifications.
        public let inbox: Bool
    }

    /// A type of notifications that users can switch.
    public struct TypeOption: Decodable, Sendable {
        /// A text for the settings screen.
        public let about: String
        /// The effective switch for pushes.
        public let on: Bool
        /// The value without a choice.
        public let `default`: Bool
        /// Whether users cannot switch it off.
        public let critical: Bool
        /// The effective switches of the channels.
        public let channels: Channels
    }

    /// The user's explicit choices only, in the form of a patch.
    public let chosen: JSONValue
    /// False limits pushes and banners to critical types.
    public let enabled: Bool
    /// The enabled channels.
    public let channels: Channels
    /// All types by name.
    public let types: [String: TypeOption]
    /// The zone of quiet hours and digests.
    public let zone: String
}

extension HeliographClient {
    /// The user's choices, and all options with their effective values.
    public func preferences() async throws -> Preferences {
        try APIConnection.decode(Preferences.self, from: await get(preferencesURL))
    }

    /// Changes choices with a merge patch (RFC 7396): absent members stay, and `.null` resets a choice.
    ///
    ///     try await client.changePreferences(["types": ["chat": false], "mutes": ["thread/9": ["muted": true]]])
    @discardableResult public func changePreferences(_ patch: JSONValue) async throws -> Preferences {
        let data = try await connection.send(
            "PATCH", preferencesURL, body: patch, attempts: configuration.attempts)
        return try APIConnection.decode(Preferences.self, from: data)
    }

    /// Switches pushes and banners of a type on or off; nil resets the choice.
    @discardableResult public func setType(_ type: String, on: Bool?) async throws -> Preferences {
        try await changePreferences(["types": [type: on.map(JSONValue.bool) ?? .null]])
    }

    /// Mutes a thread or a group, by the name that the app's rules define; without an end if `until` is nil.
    @discardableResult public func mute(_ name: String, until end: Date? = nil) async throws -> Preferences {
        let until = end.map { JSONValue.string(WireTime.text($0)) } ?? .null
        return try await changePreferences(["mutes": [name: ["muted": true, "until": until]]])
    }

    /// Removes a mute.
    @discardableResult public func unmute(_ name: String) async throws -> Preferences {
        try await changePreferences(["mutes": [name: nil]])
    }

    private var preferencesURL: URL { configuration.rules.api("v1", "preferences") }
}
