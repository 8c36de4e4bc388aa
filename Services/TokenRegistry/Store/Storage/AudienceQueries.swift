import FoundationEssentials
import Postgres
import PushProtocol

/// SQL queries that page through an audience. Only the database compares users, in the order of its indexes.
enum AudienceQueries {
    /// A range of users: greater than `after`, up to and including `upTo`. `nil`: no upper bound.
    struct Span: Hashable, Sendable {
        var after: String
        var upTo: String?
    }

    /// Queries the user of the `limit`-th active registration in the span. Returns no row if there are fewer.
    static func end(of span: Span, in app: AppID, limit: Int) -> SQL {
        """
        SELECT user_id FROM registry.registration r
        WHERE r.app = \(app.rawValue) AND r.state = 'active' AND \(within(span, "r.user_id"))
        ORDER BY r.user_id OFFSET \(limit - 1) LIMIT 1
        """
    }

    /// Queries the registrations of all users in a span that belong to the audience.
    static func everyone(in span: Span, of campaign: Campaign) -> SQL {
        """
        SELECT \(Registration.columns) FROM registry.registration r
        WHERE r.app = \(campaign.app.rawValue) AND r.state = 'active' AND \(within(span, "r.user_id"))
            AND \(isInAudience(by: campaign))
        ORDER BY r.user_id
        """
    }

    static func members(of group: UserGroup, in app: AppID, span: Span, limit: Int) -> SQL {
        """
        SELECT m.user_id FROM registry.membership m
        WHERE m.app = \(app.rawValue) AND m.kind = \(group.kind) AND m.name = \(group.name.rawValue) AND m.active
            AND \(within(span, "m.user_id"))
        ORDER BY m.user_id LIMIT \(limit)
        """
    }

    /// Queries the next users of a campaign's list.
    static func listed(by campaign: UUID, span: Span, limit: Int) -> SQL {
        """
        SELECT m.user_id FROM registry.campaign_member m
        WHERE m.campaign = \(campaign) AND \(within(span, "m.user_id"))
        ORDER BY m.user_id LIMIT \(limit)
        """
    }

    /// Queries the registrations of these users that belong to the audience.
    static func devices(of users: [UserID], of campaign: Campaign) -> SQL {
        """
        SELECT \(Registration.columns)
        FROM unnest(\(users.map(\.rawValue))::text[]) AS u (user_id)
        JOIN registry.registration r
            ON r.app = \(campaign.app.rawValue) AND r.user_id = u.user_id AND r.state = 'active'
        WHERE \(isInAudience(by: campaign))
        ORDER BY r.device_id
        """
    }

    static func within(_ span: Span, _ column: SQL) -> SQL {
        guard let upTo = span.upTo else { return "\(column) > \(span.after)" }
        return "\(column) > \(span.after) AND \(column) <= \(upTo)"
    }

    /// Matches registrations that the user had at the cut-off, and their replacements since: a rotated token, or a
    /// token moved to its correct environment. Each device so belongs to one user throughout the campaign.
    private static func isInAudience(by campaign: Campaign) -> SQL {
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
                \(condition) AND CASE WHEN r.kind IN ('fcm-web', 'web-push') THEN 'web'
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
