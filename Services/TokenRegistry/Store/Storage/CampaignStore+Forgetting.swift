import FoundationEssentials
import Postgres
import PushProtocol

/// Deletes a campaign's user list after the campaign has ended (``ListSweeper``). Lists have any length, so deletion
/// runs in steps of a few seconds. The part rows go last, since they mark that a list exists.
extension CampaignStore {
    /// Maximum list users that one statement deletes.
    static let deletionStep = 10_000

    /// Deletes the lists of ended campaigns in user order. No step scans rows that an earlier step deleted.
    ///
    /// - Parameter rest: called between steps with the duration of the last one.
    /// - Throws: the first failure, after all other lists were tried.
    package func deleteEndedLists(rest: (Duration) async throws -> Void = { _ in }) async throws {
        var failure: (any Error)?
        for row in try await database.query(Self.endedLists) {
            let campaign = try row.decode(UUID.self, at: 0)
            do {
                try await forgetList(of: campaign, rest: rest)
            } catch {
                if Task.isCancelled || error is CancellationError { throw error }
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    private func forgetList(of campaign: UUID, rest: (Duration) async throws -> Void) async throws {
        var position = ""
        while let row = try await database.query(Self.end(ofList: campaign, after: position)).first {
            let end = try row.decode(String.self, at: 0)
            let begun = ContinuousClock.now
            try await database.execute(Self.listDeletion(of: campaign, after: position, upTo: end))
            position = end
            try await rest(.now - begun)
        }
        try await database.transaction { [position] transaction in
            try await transaction.execute(Self.listDeletion(of: campaign, after: position, upTo: nil))
            try await transaction.execute("DELETE FROM registry.campaign_part WHERE campaign = \(campaign)")
        }
    }

    static let endedLists: SQL = """
        SELECT DISTINCT p.campaign FROM registry.campaign_part p JOIN registry.campaign c ON c.id = p.campaign
        WHERE c.finished_at IS NOT NULL
        """

    /// Queries the last user of a step. Returns no row if the list ends before.
    static func end(ofList campaign: UUID, after position: String) -> SQL {
        """
        SELECT m.user_id FROM registry.campaign_member m WHERE m.campaign = \(campaign) AND m.user_id > \(position)
        ORDER BY m.user_id OFFSET \(deletionStep - 1) LIMIT 1
        """
    }

    static func listDeletion(of campaign: UUID, after position: String, upTo end: String?) -> SQL {
        """
        DELETE FROM registry.campaign_member m
        WHERE m.campaign = \(campaign) AND \(AudienceQueries.within(.init(after: position, upTo: end), "m.user_id"))
        """
    }

    /// Removes a user from all stored lists. Part of an erasure.
    static func erasure(of user: AppUser) -> SQL {
        """
        DELETE FROM registry.campaign_member m
        WHERE m.user_id = \(user.user.rawValue) AND m.campaign = ANY (ARRAY(
            SELECT p.campaign FROM registry.campaign_part p JOIN registry.campaign c ON c.id = p.campaign
            WHERE c.app = \(user.app.rawValue)))
        """
    }

    /// Removes a user from the samples of list parts. Part of an erasure.
    static func sampleErasure(of user: AppUser) -> SQL {
        """
        UPDATE registry.campaign_part p SET sample = array_remove(p.sample, \(user.user.rawValue))
        FROM registry.campaign c
        WHERE c.id = p.campaign AND c.app = \(user.app.rawValue) AND \(user.user.rawValue) = ANY (p.sample)
        """
    }
}
