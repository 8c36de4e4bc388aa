import FoundationEssentials
import Primitives
import Providers
import PushProtocol
import ServiceKit

/// Shows the request to each provider for a push, encoded by the senders' code.
struct Platforms {
    /// `nil`: the apps file is not given.
    private let apps: AppCatalog?

    init(_ apps: AppCatalog?) { self.apps = apps }

    /// The preview for a provider, or the reason that there is none.
    private enum ProviderPreview {
        case preview(PayloadPreview, to: Readers)
        case unconfigured(Provider)
    }

    /// The recipients of one request.
    private enum Readers {
        /// A device, by a token of this kind.
        case device(RegistrationKind)
        /// The subscribers of a channel, a topic or a condition.
        case followers(Broadcast.Destination)
    }

    /// The lines for each provider: the size or the reason that nothing is sent, then the request.
    func lines(_ prediction: DryRun.PredictedDecision) -> [String] {
        guard let notification = prediction.notification else { return [] }
        return ways(notification, at: prediction.at).flatMap { way in
            switch way {
            case .unconfigured(let provider):
                ["    \(Self.name(provider)): skipped; the app has no credentials for this provider"]
            case .preview(let preview, let readers): Self.lines(preview, to: readers)
            }
        }
    }

    /// One document for each provider: the request with its size, or the reason that nothing is sent.
    func json(_ prediction: DryRun.PredictedDecision) -> [JSONValue] {
        guard let notification = prediction.notification else { return [] }
        return ways(notification, at: prediction.at).map { way in
            switch way {
            case .unconfigured(let provider): ["provider": .string(provider.rawValue), "skipped": "no-credentials"]
            case .preview(let preview, _): Self.json(preview)
            }
        }
    }

    private static func json(_ preview: PayloadPreview) -> JSONValue {
        var request: [String: JSONValue] = [
            "provider": .string(preview.provider.rawValue), "limit": .int(Int64(preview.limit)),
            "bytes": preview.size.map { .int(Int64($0)) } ?? .null, "rejected": .optional(preview.rejectionReason),
        ]
        if case .success(let copy) = preview.request {
            request["headers"] = .array(copy.headers.map(JSONValue.string))
            request["body"] = (try? WireCoding.decode(JSONValue.self, from: copy.body)) ?? .null
        }
        return .object(request)
    }

    private func ways(_ notification: Notification, at now: Timestamp) -> [ProviderPreview] {
        if let broadcast = notification.broadcast {
            let push = notification.push(to: broadcast, at: now)
            return [way(push, to: .followers(broadcast.destination), now: now)]
        }
        let kinds = TargetKinds(notification.content)
        let platforms = notification.devices?.platforms ?? DeviceFilter.Platform.allCases
        return Provider.allCases.compactMap { provider in
            switch provider {
            // Apple devices may also be registered with FCM.
            case .apns where !platforms.contains(.apple): nil
            case .apns: way(notification.push(by: .apns, now: now), to: .device(kinds.apns), now: now)
            case .fcm where !kinds.includesFCM: nil
            case .fcm: way(notification.push(by: .fcm, now: now), to: .device(.fcmToken), now: now)
            // Only the apps file has the app's home page, and few apps have browsers.
            case .webpush where !kinds.includesWebPush || !platforms.contains(.web): nil
            case .webpush where apps?[notification.app]?.webPush == nil: nil
            case .webpush: way(notification.push(by: .webpush, now: now), to: .device(.webPush), now: now)
            }
        }
    }

    private func way(_ push: Push, to readers: Readers, now: Timestamp) -> ProviderPreview {
        guard isConfigured(push.app, for: push.provider) else { return .unconfigured(push.provider) }
        let app = apps?[push.app]
        let site = app?.webPush.flatMap { try? WebPushSite($0.homePage.text) }
        return .preview(PayloadPreview(push, bundle: app?.apns?.topic, site: site, now: now), to: readers)
    }

    /// Whether an app has credentials for a provider; `true` without an apps file.
    private func isConfigured(_ app: AppID, for provider: Provider) -> Bool {
        guard let apps else { return true }
        return switch provider {
        case .apns: apps[app]?.apns != nil
        case .fcm: apps[app]?.fcm != nil
        case .webpush: apps[app]?.webPush != nil
        }
    }

    private static func name(_ provider: Provider) -> String {
        switch provider {
        case .apns: "APNs (iOS, macOS, watchOS)"
        case .fcm: "FCM (Android, web, iOS by Firebase)"
        case .webpush: "Web Push (browsers), before encryption"
        }
    }

    private static func lines(_ preview: PayloadPreview, to readers: Readers) -> [String] {
        let size = preview.size.map { "\($0) of \(preview.limit) bytes" } ?? "at most \(preview.limit) bytes"
        let note =
            switch readers {
            case .device(let kind): kind == .defaultKind(for: preview.provider) ? "" : ", \(kind.rawValue) tokens only"
            case .followers(.channel(_, let environment)): ", all subscribers of a channel in \(environment.rawValue)"
            case .followers(.topic): ", all subscribers of a topic"
            case .followers(.condition): ", all subscribers whose topics match a condition"
            }
        let head = "    \(name(preview.provider))\(note): "
        guard case .success(let copy) = preview.request else {
            return [head + "never sent; the sender refuses it as \(preview.rejectionReason ?? "unknown") (\(size))"]
        }
        // Leaves out headers that differ for each device or are always the same.
        let headers = copy.headers.filter { !$0.hasPrefix("apns-id:") && !$0.hasPrefix("content-type:") }
        // Shows the path for a channel only, because it has the bundle id. Other paths have the token or the project.
        let place: [String] =
            switch readers {
            case .followers(.channel): ["        POST \(copy.path)"]
            case .followers(.topic), .followers(.condition), .device: []
            }
        return [head + size] + place
            + (headers.isEmpty ? [] : ["        " + headers.joined(separator: ", ")])
            + ["        " + String(decoding: copy.body, as: UTF8.self)]
    }
}

extension Notification {
    /// The push that the registry would create for a device of the first recipient.
    fileprivate func push(by provider: Provider, now: Timestamp) -> Push {
        let recipient = recipients.first
        let id = recipient?.notification ?? trace.id
        return Push(
            trace: trace, app: app, provider: provider, environment: .production, lane: lane, content: content,
            expiresAt: expiresAt, delivery: delivery,
            targets: [
                Push.Target(
                    device: id, token: PayloadPreview.token(for: provider), notification: id, badge: recipient?.badge,
                    registeredAt: now)
            ])
    }
}
