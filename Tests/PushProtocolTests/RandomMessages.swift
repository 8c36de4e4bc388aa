import FoundationEssentials
import PushProtocol
import TestSupport

// Random messages with all members, and with strings that need escaping.

extension UUID {
    static func random(_ random: inout SplitMix) -> UUID {
        DerivedID.caused(by: DerivedID.namespace, "\(random.next())")
    }
}

extension String {
    static func random(_ random: inout SplitMix) -> String {
        let words = ["Ann", "Hi \"there\"", "é€😀", "a\nb\t\\", "/path/x?y=1", "", "\u{1}\u{1f}", "long text long text"]
        return (0..<Int.random(in: 0..<4, using: &random)).map { _ in words.randomElement(using: &random)! }.joined()
    }
}

extension Optional {
    static func maybe(_ random: inout SplitMix, _ value: (inout SplitMix) -> Wrapped) -> Wrapped? {
        Bool.random(using: &random) ? value(&random) : nil
    }
}

extension JSONValue {
    static func random(_ random: inout SplitMix, depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth < 3 ? 6 : 4), using: &random) {
        case 0: .string(.random(&random))
        case 1: .int(Int64.random(in: -1_000_000...1_000_000, using: &random))
        case 2: .bool(Bool.random(using: &random))
        case 3: .null
        case 4: .array((0..<3).map { _ in JSONValue.random(&random, depth: depth + 1) })
        default: .object(["k": .random(&random, depth: depth + 1), "l/é": .random(&random, depth: depth + 1)])
        }
    }
}

extension ProviderMessageID {
    static func random(_ random: inout SplitMix) -> ProviderMessageID {
        let id = UUID.random(&random)
        return [ProviderMessageID(id), ProviderMessageID(id.uuidString), ProviderMessageID(String.random(&random))]
            .randomElement(using: &random)!
    }
}

extension Trace {
    static func random(_ random: inout SplitMix) -> Trace {
        Trace(
            id: .random(&random), correlation: .random(&random), causation: .random(&random),
            traceparent: .maybe(&random) { .random(&$0) })
    }
}

extension Push {
    static func random(_ random: inout SplitMix) -> Push {
        var targets = (0..<Int.random(in: 0..<4, using: &random)).map { _ in Target.random(&random) }
        if Bool.random(using: &random) {
            for row in targets.indices {
                targets[row].notification = targets[0].notification
                targets[row].badge = targets[0].badge
            }
        }
        return Push(
            trace: .random(&random), app: AppID(rawValue: "demo-1")!,
            provider: Provider.allCases.randomElement(using: &random)!,
            environment: ProviderEnvironment.allCases.randomElement(using: &random)!,
            lane: Lane.allCases.randomElement(using: &random)!, content: .random(&random),
            expiresAt: .maybe(&random) { Timestamp(milliseconds: Int64.random(in: 0...1 << 50, using: &$0)) },
            delivery: .maybe(&random) { DeliveryPolicy.allCases.randomElement(using: &$0)! },
            targets: targets)
    }
}

extension Push.Target {
    static func random(_ random: inout SplitMix) -> Push.Target {
        Push.Target(
            device: .random(&random),
            token: DeviceToken(secret: "token\(random.next())\(["", "", "", #"\"é"#].randomElement(using: &random)!)"),
            address: .maybe(&random) { Push.Address.allCases.randomElement(using: &$0)! },
            notification: .random(&random), badge: .maybe(&random) { Int.random(in: -1...1000, using: &$0) },
            registeredAt: Timestamp(milliseconds: Int64.random(in: 0...1 << 50, using: &random)),
            fallback: .maybe(&random) { DeviceToken(secret: "token\($0.next())") },
            owner: .maybe(&random) { UserHash(rawValue: Int64.random(in: 0...1 << 53 - 1, using: &$0)) })
    }
}

extension Content {
    static func random(_ random: inout SplitMix) -> Content {
        Content(
            title: .maybe(&random) { .random(&$0) }, subtitle: .maybe(&random) { .random(&$0) },
            body: .maybe(&random) { .random(&$0) }, badge: .maybe(&random) { Int.random(in: 0...99, using: &$0) },
            sound: .maybe(&random) { .random(&$0) }, category: .maybe(&random) { .random(&$0) },
            thread: .maybe(&random) { .random(&$0) }, deepLink: .maybe(&random) { .random(&$0) },
            image: .maybe(&random) { .random(&$0) },
            data: .maybe(&random) { ["a": .random(&$0), "b/": .random(&$0)] }, silent: Bool.random(using: &random),
            interruptionLevel: .maybe(&random) { InterruptionLevel.allCases.randomElement(using: &$0)! },
            collapseKey: .maybe(&random) { .random(&$0) },
            apns: .maybe(&random) {
                APNsOverride(
                    headers: .maybe(&$0) { ["apns-priority": .random(&$0)] },
                    payload: .maybe(&$0) { .object(["aps": .random(&$0)]) },
                    channels: .maybe(&$0) { _ in ["production": ChannelID(rawValue: "dHN0")!] })
            },
            fcm: .maybe(&random) {
                FCMOverride(
                    message: .maybe(&$0) { .object(["data": .random(&$0)]) },
                    validateOnly: .maybe(&$0) { Bool.random(using: &$0) })
            },
            web: .maybe(&random) {
                WebPushOverride(
                    urgency: .maybe(&$0) { WebPushOverride.Urgency.allCases.randomElement(using: &$0)! },
                    message: .maybe(&$0) { .object(["notification": .random(&$0)]) })
            })
    }
}

extension Outcomes {
    static func random(_ random: inout SplitMix) -> Outcomes {
        Outcomes(
            trace: .random(&random), app: AppID(rawValue: "demo-1")!,
            origin: Origin.allCases.randomElement(using: &random)!,
            environment: .maybe(&random) { ProviderEnvironment.allCases.randomElement(using: &$0)! },
            lane: Lane.allCases.randomElement(using: &random)!,
            outcomes: Bool.random(using: &random)
                ? (0..<Int.random(in: 0..<5, using: &random)).map { _ in .random(&random) } : acceptances(&random))
    }

    /// Outcomes that are encoded as a table.
    private static func acceptances(_ random: inout SplitMix) -> [Outcome] {
        let notification = UUID?.maybe(&random) { .random(&$0) }
        let namesAre = Int.random(in: 0..<3, using: &random)
        return (0..<Int.random(in: 1..<5, using: &random)).map { _ in
            Outcome(
                notification: notification ?? .random(&random), device: .random(&random),
                answer: .accepted(id: namesAre == 0 ? nil : .maybe(&random) { .random(&$0) }),
                at: Timestamp(milliseconds: 1_767_225_600_123), registeredAt: nil)
        }
    }
}

extension Outcome {
    static func random(_ random: inout SplitMix) -> Outcome {
        Outcome(
            notification: .random(&random), device: .maybe(&random) { .random(&$0) }, answer: .random(&random),
            at: Timestamp(milliseconds: Int64.random(in: 0...1 << 50, using: &random)),
            registeredAt: .maybe(&random) { Timestamp(milliseconds: Int64.random(in: 0...1 << 50, using: &$0)) },
            elsewhere: .maybe(&random) { ProviderEnvironment.allCases.randomElement(using: &$0)! },
            refusedFID: .maybe(&random) { .random(&$0) },
            owner: .maybe(&random) { UserHash(rawValue: Int64.random(in: 0...1 << 53 - 1, using: &$0)) })
    }
}

extension Outcome.Answer {
    static func random(_ random: inout SplitMix) -> Outcome.Answer {
        let reason = String.random(&random)
        return switch Disposition.allCases.randomElement(using: &random)! {
        case .accepted: .accepted(id: .maybe(&random) { .random(&$0) })
        case .unregistered:
            .unregistered(
                since: .maybe(&random) { Timestamp(milliseconds: Int64.random(in: 0...1 << 50, using: &$0)) },
                reason: reason)
        case .rejected: .rejected(reason: reason, suspectToken: Bool.random(using: &random))
        case .throttled: .throttled(reason: reason)
        case .misconfigured: .misconfigured(reason: reason)
        case .expired: .expired
        case .skipped: .skipped(reason: reason)
        case .unknown: .unknown(reason: reason)
        }
    }
}

extension PushProtocol.Notification {
    /// A notification with the members of a random push.
    static func random(_ random: inout SplitMix) -> PushProtocol.Notification {
        let push = Push.random(&random)
        return PushProtocol.Notification(
            trace: push.trace, app: push.app, rule: "rule-\(Int.random(in: 0..<9, using: &random))", lane: push.lane,
            content: push.content, expiresAt: push.expiresAt, delivery: push.delivery,
            recipients: push.targets.enumerated().map { index, target in
                .init(
                    user: UserID(rawValue: "us\"er é\(index)")!, notification: target.notification, badge: target.badge)
            })
    }
}
