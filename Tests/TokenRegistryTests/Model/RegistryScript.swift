import Foundation
import PushProtocol
import TestSupport

@testable import RegistryStore

/// A random operation on one app's registrations and memberships. Few users, tokens, installations and groups exist, so
/// that operations collide.
enum RegistryOperation {
    case register([RegistrationRequest])
    case unregister(RegistrationRequest)
    case deactivate(UUID, since: Timestamp)
    case correct(UUID, to: ProviderEnvironment)
    case erase(UserID, at: Timestamp)
    case change([MembershipChange])
    case replace(InstallationID, UserID, [RegistrationRequest])
    case leave(InstallationID, UserID)

    /// - Parameter now: the sequence's time. Late operations are up to a hundred days older.
    static func random(app: AppID, now: Timestamp, using random: inout SplitMix) -> RegistryOperation {
        switch Int.random(in: 0..<22, using: &random) {
        case 0..<8:
            let first = claim(app, now, &random)
            let more = (0..<Int.random(in: 0...2, using: &random)).map { _ in
                var claim = claim(app, now, &random)
                claim.user = first.user
                return claim
            }
            return .register([first] + more)
        case 8..<10: return .unregister(claim(app, now, &random))
        case 10..<12: return .deactivate(claim(app, now, &random).device, since: late(now, &random))
        case 12..<14:
            let claim = claim(app, now, &random)
            return .correct(claim.device, to: Bool.random(using: &random) ? .production : .development)
        case 14..<19:
            return .change((0..<Int.random(in: 1...3, using: &random)).map { _ in change(now, &random) })
        case 19: return .erase(user(&random), at: late(now, &random))
        case 20: return replacement(app, now, &random)
        default: return .leave(installation(&random), user(&random))
        }
    }

    /// An installation's registrations as an app sends them at launch: no repeated token, or kind and scope.
    private static func replacement(
        _ app: AppID, _ now: Timestamp, _ random: inout SplitMix
    ) -> RegistryOperation {
        let (user, installation) = (user(&random), installation(&random))
        var claims: [RegistrationRequest] = []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            var claim = claim(app, now, &random)
            (claim.user, claim.installation, claim.at) = (user, installation, now)
            let isAnother = claims.allSatisfy {
                ($0.provider, $0.token) != (claim.provider, claim.token)
                    && ($0.kind, $0.scope) != (claim.kind, claim.scope)
            }
            if isAnother { claims.append(claim) }
        }
        return .replace(installation, user, claims)
    }

    private static func installation(_ random: inout SplitMix) -> InstallationID {
        InstallationID(rawValue: ["i1", "i2"].randomElement(using: &random)!)!
    }

    private static func user(_ random: inout SplitMix) -> UserID {
        UserID(rawValue: ["a", "b", "c"].randomElement(using: &random)!)!
    }

    /// Topics and tags have the same names; only their kind differs.
    private static func change(_ now: Timestamp, _ random: inout SplitMix) -> MembershipChange {
        let group: UserGroup =
            [.topic(GroupName(rawValue: "t")!), .topic(GroupName(rawValue: "u")!), .tag(GroupName(rawValue: "t")!)]
            .randomElement(using: &random)!
        return MembershipChange(
            user: user(&random), group: group, joins: Int.random(in: 0..<3, using: &random) > 0,
            at: late(now, &random))
    }

    private static func claim(_ app: AppID, _ now: Timestamp, _ random: inout SplitMix) -> RegistrationRequest {
        let kind: RegistrationKind = [.alert, .alert, .voip, .liveActivity, .fcmToken, .fid, .fcmWeb]
            .randomElement(using: &random)!
        let installation = ["i1", "i2", nil, nil].randomElement(using: &random)!
        return RegistrationRequest(
            app: app, user: user(&random), provider: kind.provider,
            environment: [.production, .development].randomElement(using: &random)!,
            token: DeviceToken(secret: ["01", "02", "03"].randomElement(using: &random)!), kind: kind,
            installation: installation.flatMap { InstallationID(rawValue: $0) },
            scope: kind == .liveActivity ? ["s", "t"].randomElement(using: &random)! : nil,
            at: late(now, &random))
    }

    private static func late(_ now: Timestamp, _ random: inout SplitMix) -> Timestamp {
        guard Int.random(in: 0..<4, using: &random) == 0 else { return now }
        return now + .seconds(-86_400 * Int64.random(in: 0...100, using: &random))
    }
}
