package import FoundationEssentials
package import Postgres
import PushProtocol

/// Queries that select the notifications of a revocation. `RevocationLog` counts them, and a worker of rules revokes
/// them.
package enum RevocationSelection {
    /// The longest time that a push may wait for a sender: the retention of the senders' stream.
    private static let reach = StreamName.senderRevocations.retention
    /// A push this young may wait for some devices, although others have an outcome.
    private static let recent = Duration.seconds(3600)

    /// Returns a query for the ids of a revocation's decided notifications, ascending.
    ///
    /// A digest belongs to many events, so it is selected by its own id only: it has no decision with the step 0.
    ///
    /// - Parameters:
    ///   - position: only ids after this one.
    ///   - limit: the maximum number of ids; `nil` means all.
    package static func notifications(
        of target: Revocation.Target, app: String, user: String?, after position: UUID? = nil, limit: Int? = nil
    ) -> SQL {
        let ofUser: SQL = user.map { "AND decision.user_id = \($0)" } ?? ""
        let beyond: SQL = position.map { "AND decision.notification > \($0)" } ?? ""
        let end: SQL = limit.map { "ORDER BY decision.notification LIMIT \($0)" } ?? ""
        return switch target {
        case .event(let event):
            """
            SELECT decision.notification FROM rules.decision
            WHERE decision.event IN (\(Self.events(event, app: app))) AND step = 0 \(ofUser) \(beyond) \(end)
            """
        case .notification(let notification):
            """
            SELECT decision.notification FROM (SELECT \(notification) AS notification) AS decision
            WHERE true \(beyond) \(end)
            """
        case .item(let item, let until):
            """
            SELECT decision.notification FROM rules.decision
                JOIN (\(Self.items(item, app: app, until: until))) AS about USING (event, rule)
            WHERE step = 0 \(ofUser) \(beyond) \(end)
            """
        }
    }

    /// A condition on `rules.crowd` for a revocation's fan-outs.
    package static func fanOuts(of target: Revocation.Target, app: String) -> SQL {
        switch target {
        case .event(let event): "crowd.event IN (\(events(event, app: app)))"
        case .notification: "false"
        case .item(let item, let until):
            "(crowd.event, crowd.rule) IN (\(items(item, app: app, until: until)))"
        }
    }

    /// Returns a query for the pushes among notifications that a sender may still have, and whether a provider has
    /// accepted each for some device.
    ///
    /// - Parameter chosen: a query for notification ids.
    package static func pushes(among chosen: SQL) -> SQL {
        """
        SELECT chosen.notification, \(hasAcceptance) AS is_accepted FROM (\(chosen)) AS chosen
            \(lastDecision(of: "chosen.notification"))
        WHERE last.answer IN ('push', 'push-quietly') AND last.reason NOT IN ('audience', 'segment')
            AND last.decided_at > clock_timestamp() - \(reach)
            AND (last.decided_at > clock_timestamp() - \(recent)
                OR NOT EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = chosen.notification))
        """
    }

    /// Returns a query for the campaigns among notifications of the last seven days. The id of such a notification is
    /// that of its campaign.
    ///
    /// - Parameter chosen: a query for notification ids.
    package static func campaigns(among chosen: SQL) -> SQL {
        """
        SELECT chosen.notification FROM (\(chosen)) AS chosen
            \(lastDecision(of: "chosen.notification"))
        WHERE last.answer = 'push' AND last.reason IN ('audience', 'segment')
            AND last.decided_at > clock_timestamp() - \(reach)
        """
    }

    /// Returns a query for the pushes among notifications whose copies phones may show.
    ///
    /// - Parameter chosen: a query for notification ids.
    package static func shown(among chosen: SQL) -> SQL {
        """
        SELECT chosen.notification FROM (\(chosen)) AS chosen
            \(lastDecision(of: "chosen.notification"))
        WHERE \(isVisible) AND \(hasAcceptance)
            AND NOT EXISTS (
                SELECT FROM rules.shown_copy WHERE shown_copy.notification = chosen.notification AND is_accepted)
        """
    }

    /// A statement part: the last decision about a notification, as `last`.
    package static func lastDecision(of notification: SQL) -> SQL {
        """
        CROSS JOIN LATERAL (
            SELECT event, rule, user_id, answer, reason, decided_at FROM rules.decision
            WHERE decision.notification = \(notification) ORDER BY step DESC LIMIT 1
        ) AS last
        """
    }

    /// A condition on ``lastDecision(of:)``: a push of the last seven days that a phone shows.
    package static let isVisible: SQL = """
        last.answer IN ('push', 'push-quietly') AND last.reason NOT IN ('audience', 'broadcast', 'noiseless', 'surface-ended')
            AND last.decided_at > clock_timestamp() - \(reach)
        """

    /// A condition on `rules.outcome`: an answer after which a phone may show the notification.
    package static let isAccepted: SQL = "disposition IN ('accepted', 'unknown')"

    private static let hasAcceptance: SQL = """
        EXISTS (SELECT FROM rules.outcome WHERE outcome.notification = chosen.notification AND \(isAccepted))
        """

    private static func events(_ id: String, app: String) -> SQL {
        "SELECT key FROM rules.event WHERE event.id = \(id) AND event.app = \(app)"
    }

    private static func items(_ item: String, app: String, until: Date) -> SQL {
        """
        SELECT event, rule FROM rules.event_item
        WHERE event_item.app = \(app) AND event_item.item = \(item) AND occurred_at <= \(until)
        """
    }
}
