import FoundationEssentials
import Messaging
import PushProtocol
import RuleEngine

extension EventCase {
    /// The messages by which senders skip the copies of replaced pushes that they have not sent yet. Their ids follow
    /// from the notifications.
    func revocations(of originals: [UUID]) throws(WireError) -> [Outbound] {
        try NotificationRevocation.outbound(revoking: originals, of: record.app, at: record.arrivedAt)
    }
}
