import FoundationEssentials
import Providers
import PushProtocol
import ServiceKit

/// What a person's devices would get of what is pushed, provider by provider: the senders' own writing of it.
struct Platforms {
    /// `nil`: which apps are configured, and how, is not known.
    private let apps: AppCatalog?

    init(_ apps: AppCatalog?) { self.apps = apps }

    /// A provider that may be asked, and whom it would be asked to tell.
    private enum Way {
        case preview(PayloadPreview, to: Readers)
        case unconfigured(Provider)
    }

    /// Whom one request reaches.
    private enum Readers {
        /// A device, by a token of this kind.
        case device(RegistrationKind)
        /// Whoever follows this.
        case followers(Broadcast.Destination)
    }

    /// For each provider how large it is, or why it would not leave; then what would leave.
    func lines(_ prediction: DryRun.PredictedDecision) -> [String] {
        guard let notification = prediction.notification else { return [] }
        return ways(notification, at: prediction.at).flatMap { way in
            switch way {
            case .unconfigured(let provider):
                ["    \(Self.name(provider)): nothing; the app has no credentials for it, and it is skipped"]
            case .preview(let preview, let readers): Self.lines(preview, to: readers)
            }
        }
    }

    private func ways(_ notification: Notification, at now: Timestamp) -> [Way] {
        if let broadcast = notification.broadcast {
            let push = notification.push(to: broadcast, at: now)
            return [way(push, to: .followers(broadcast.destination), now: now)]
        }
        let kinds = TargetKinds(notification.content)
        return Provider.allCases.compactMap { provider in
            switch provider {
            case .apns: way(notification.push(by: .apns, now: now), to: .device(kinds.apns), now: now)
            case .fcm where !kinds.includesFCM: nil
            case .fcm: way(notification.push(by: .fcm, now: now), to: .device(.fcmToken), now: now)
            }
        }
    }

    private func way(_ push: Push, to readers: Readers, now: Timestamp) -> Way {
        guard isConfigured(push.app, for: push.provider) else { return .unconfigured(push.provider) }
        return .preview(PayloadPreview(push, bundle: apps?[push.app]?.apns?.topic, now: now), to: readers)
    }

    /// Whether an app has credentials for a provider; where that is not known, it has.
    private func isConfigured(_ app: AppID, for provider: Provider) -> Bool {
        guard let apps else { return true }
        return switch provider {
        case .apns: apps[app]?.apns != nil
        case .fcm: apps[app]?.fcm != nil
        }
    }

    private static func name(_ provider: Provider) -> String {
        switch provider {
        case .apns: "APNs (iOS, macOS, watchOS)"
        case .fcm: "FCM (Android, web, iOS by Firebase)"
        }
    }

    private static func lines(_ preview: PayloadPreview, to readers: Readers) -> [String] {
        let size = preview.size.map { "\($0) of \(preview.limit) bytes" } ?? "at most \(preview.limit) bytes"
        let note =
            switch readers {
            case .device(let kind): kind == .defaultKind(for: preview.provider) ? "" : ", \(kind.rawValue) tokens only"
            case .followers(.channel(_, let environment)): ", all who follow a channel of \(environment.rawValue)"
            case .followers(.topic): ", all who follow a topic"
            case .followers(.condition): ", all whose topics fulfil a condition"
            }
        let head = "    \(name(preview.provider))\(note): "
        guard case .success(let copy) = preview.request else {
            return [head + "never sent; the sender refuses it as \(preview.rejectionReason ?? "unknown") (\(size))"]
        }
        // What is each device's own, and what is always the same, tells nothing.
        let headers = copy.headers.filter { !$0.hasPrefix("apns-id:") && !$0.hasPrefix("content-type:") }
        // Of a device the path holds its token and of a topic the project; of a channel it says whose it is.
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
    /// As the registry would address it to a device of its first recipient.
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
