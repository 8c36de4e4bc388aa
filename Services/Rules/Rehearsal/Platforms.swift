import FoundationEssentials
import PushProtocol
import PushWires
import ServiceKit

/// What a person's devices would get of what is pushed, provider by provider: the senders' own writing of it.
struct Platforms {
    /// `nil`: which apps are configured, and how, is not known.
    private let apps: AppCatalog?

    init(_ apps: AppCatalog?) { self.apps = apps }

    /// A provider that may be asked, and the kind of token that it would be asked with.
    private enum Way {
        case proof(PushProof, to: RegistrationKind)
        case unconfigured(Provider)
    }

    /// For each provider how large it is, or why it would not leave; then what would leave.
    func lines(_ telling: Rehearsal.Telling) -> [String] {
        guard let notification = telling.notification else { return [] }
        return ways(notification, at: telling.at).flatMap { way in
            switch way {
            case .unconfigured(let provider):
                ["    \(Self.name(provider)): nothing; the app has no credentials for it, and it is skipped"]
            case .proof(let proof, let kind): Self.lines(proof, to: kind)
            }
        }
    }

    /// What would be sent, to the devices that the registry would choose.
    func proofs(_ notification: Notification, at now: Timestamp) -> [PushProof] {
        ways(notification, at: now).compactMap { way in
            switch way {
            case .proof(let proof, _): proof
            case .unconfigured: nil
            }
        }
    }

    private func ways(_ notification: Notification, at now: Timestamp) -> [Way] {
        let kinds = KindSelection(notification.content)
        return Provider.allCases.compactMap { provider in
            let app = apps?[notification.app]
            switch provider {
            case .apns where apps != nil && app?.apns == nil, .fcm where apps != nil && app?.fcm == nil:
                return .unconfigured(provider)
            case .apns:
                let push = notification.push(by: provider, now: now)
                return .proof(PushProof(push, bundle: app?.apns?.topic, now: now), to: kinds.apns)
            case .fcm:
                guard kinds.includesFCM else { return nil }
                return .proof(PushProof(notification.push(by: provider, now: now), now: now), to: .fcmToken)
            }
        }
    }

    private static func name(_ provider: Provider) -> String {
        switch provider {
        case .apns: "APNs (iOS, macOS, watchOS)"
        case .fcm: "FCM (Android, web, iOS by Firebase)"
        }
    }

    private static func lines(_ proof: PushProof, to kind: RegistrationKind) -> [String] {
        let size = proof.size.map { "\($0) of \(proof.limit) bytes" } ?? "at most \(proof.limit) bytes"
        let tokens = kind == .usual(of: proof.provider) ? "" : ", \(kind.rawValue) tokens only"
        let head = "    \(name(proof.provider))\(tokens): "
        guard case .success(let copy) = proof.copy else {
            return [head + "never sent; the sender refuses it as \(proof.refusal ?? "unknown") (\(size))"]
        }
        // What is each device's own, and what is always the same, tells nothing.
        let headers = copy.headers.filter { !$0.hasPrefix("apns-id:") && !$0.hasPrefix("content-type:") }
        return [head + size]
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
                    device: id, token: PushProof.token(for: provider), notification: id, badge: recipient?.badge,
                    registeredAt: now)
            ])
    }
}
