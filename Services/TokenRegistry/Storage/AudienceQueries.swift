import FoundationEssentials
import Postgres
import PushProtocol

/// The statements that walk through an audience. Users are compared by the database alone, in the order of its indexes.
enum AudienceQueries {
    /// A part of the walk: users after `after`, up to `upTo`, itself included; `nil`: to the end.
    struct Span: Hashable, Sendable {
        var after: String
        var upTo: String?
    }

    /// Of everyone in an app: the user of the `limit`-th registration in the span; no row when there are fewer.
    static func end(of span: Span, in app: AppID, limit: Int) -> SQL {
        """
        SELECT user_id FROM registry.registration r
        WHERE r.app = \(app.rawValue) AND r.state = 'active' AND \(within(span, "r.user_id"))
        ORDER BY r.user_id OFFSET \(limit - 1) LIMIT 1
        """
    }

    /// All that is registered in a span of everyone, and meant.
    static func everyone(in span: Span, of campaign: Campaign) -> SQL {
        """
        SELECT \(Registration.columns) FROM registry.registration r
        WHERE r.app = \(campaign.app.rawValue) AND r.state = 'active' AND \(within(span, "r.user_id"))
            AND \(isMeant(by: campaign))
        ORDER BY r.user_id
        """
    }

    /// The next members of a group.
    static func members(of group: UserGroup, in app: AppID, span: Span, limit: Int) -> SQL {
        """
        SELECT m.user_id FROM registry.membership m
        WHERE m.app = \(app.rawValue) AND m.kind = \(group.kind) AND m.name = \(group.name.rawValue) AND m.active
            AND \(within(span, "m.user_id"))
        ORDER BY m.user_id LIMIT \(limit)
        """
    }

    /// The next of the users that a campaign lists.
    static func listed(by campaign: UUID, span: Span, limit: Int) -> SQL {
        """
        SELECT m.user_id FROM registry.campaign_member m
        WHERE m.campaign = \(campaign) AND \(within(span, "m.user_id"))
        ORDER BY m.user_id LIMIT \(limit)
        """
    }

    /// What of these users' registrations is meant.
    static func devices(of users: [UserID], of campaign: Campaign) -> SQL {
        """
        SELECT \(Registration.columns)
        FROM unnest(\(users.map(\.rawValue))::text[]) AS u (user_id)
        JOIN registry.registration r
            ON r.app = \(campaign.app.rawValue) AND r.user_id = u.user_id AND r.state = 'active'
        WHERE \(isMeant(by: campaign))
        ORDER BY r.device_id
        """
    }

    static func within(_ span: Span, _ column: SQL) -> SQL {
        guard let upTo = span.upTo else { return "\(column) > \(span.after)" }
        return "\(column) > \(span.after) AND \(column) <= \(upTo)"
    }

    /// What was the user's at the cut-off, or has since taken the place of what was: an exchanged token, or one that was
    /// moved to the environment it lives in. So each device is one user's for the whole campaign.
    private static func isMeant(by campaign: Campaign) -> SQL {
        let condition = campaign.audience.devices.map(fits) ?? "true"
        return """
            (r.state_changed_at <= \(campaign.cutOff) OR EXISTS (
                SELECT FROM registry.registration p
                WHERE p.app = r.app AND p.user_id = r.user_id AND p.state <> 'active' AND p.state = 'replaced'
                    AND p.registered_at <= \(campaign.cutOff) AND p.state_changed_at > \(campaign.cutOff)
                    AND (p.successor = r.device_id OR p.installation = r.installation
                        AND p.kind IS NOT DISTINCT FROM r.kind AND p.scope IS NOT DISTINCT FROM r.scope)
            )) AND \(condition)
            """
    }

    private static func fits(_ filter: DeviceFilter) -> SQL {
        var condition: SQL = "true"
        if let platforms = filter.platform {
            condition = """
                \(condition) AND CASE WHEN r.kind = 'fcm-web' THEN 'web'
                    WHEN r.provider = 'apns' OR r.platform = 'ios' THEN 'apple' ELSE 'android' END = ANY (\(platforms.map(\.rawValue))::text[])
                """
        }
        if let locales = filter.locale {
            condition = """
                \(condition) AND EXISTS (
                    SELECT FROM unnest(\(locales.map { $0.lowercased() })::text[]) AS l (range)
                    WHERE lower(r.locale) = l.range OR starts_with(lower(r.locale), l.range || '-'))
                """
        }
        if let zones = filter.timeZone { condition = "\(condition) AND r.time_zone = ANY (\(zones)::text[])" }
        if let from = filter.appVersion?.from {
            condition = "\(condition) AND registry.version_key(r.app_version) >= registry.version_key(\(from.rawValue))"
        }
        if let until = filter.appVersion?.until {
            condition = "\(condition) AND registry.version_key(r.app_version) < registry.version_key(\(until.rawValue))"
        }
        if let after = filter.lastSeen?.after { condition = "\(condition) AND r.registered_at >= \(after.date)" }
        if let before = filter.lastSeen?.before { condition = "\(condition) AND r.registered_at < \(before.date)" }
        return condition
    }
}
