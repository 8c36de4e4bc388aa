import FoundationEssentials
import Postgres
import PushProtocol

/// A campaign's list goes when the campaign is over (``ListSweeper``): in steps, as a list has any length and a statement a few
/// seconds. Its parts go last, which tell meanwhile that there is a list.
extension CampaignStore {
    /// The most users of a list that one statement deletes.
    static let forgottenAtOnce = 10_000

    /// Deletes what is left of lists whose campaigns are over, from one user to the next in their order: what was deleted already is
    /// not passed again.
    ///
    /// - Parameter rest: between two steps, told how long the last one took.
    /// - Throws: the first failure, after every other list had its turn.
    func forgetLists(rest: (Duration) async throws -> Void = { _ in }) async throws {
        var failure: (any Error)?
        for row in try await database.query(Self.leftLists) {
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
            try await database.execute(Self.listForgetting(of: campaign, after: position, upTo: end))
            position = end
            try await rest(.now - begun)
        }
        try await database.transaction { [position] transaction in
            try await transaction.execute(Self.listForgetting(of: campaign, after: position, upTo: nil))
            try await transaction.execute("DELETE FROM registry.campaign_part WHERE campaign = \(campaign)")
        }
    }

    static let leftLists: SQL = """
        SELECT DISTINCT p.campaign FROM registry.campaign_part p JOIN registry.campaign c ON c.id = p.campaign
        WHERE c.finished_at IS NOT NULL
        """

    /// The last user of a step; no row when the list ends before.
    static func end(ofList campaign: UUID, after position: String) -> SQL {
        """
        SELECT m.user_id FROM registry.campaign_member m WHERE m.campaign = \(campaign) AND m.user_id > \(position)
        ORDER BY m.user_id OFFSET \(forgottenAtOnce - 1) LIMIT 1
        """
    }

    static func listForgetting(of campaign: UUID, after position: String, upTo end: String?) -> SQL {
        """
        DELETE FROM registry.campaign_member m
        WHERE m.campaign = \(campaign) AND \(AudienceQueries.within(.init(after: position, upTo: end), "m.user_id"))
        """
    }

    /// Takes a user off the lists that there are; part of an erasure.
    static func erasure(of user: AppUser) -> SQL {
        """
        DELETE FROM registry.campaign_member m
        WHERE m.user_id = \(user.user.rawValue) AND m.campaign = ANY (ARRAY(
            SELECT p.campaign FROM registry.campaign_part p JOIN registry.campaign c ON c.id = p.campaign
            WHERE c.app = \(user.app.rawValue)))
        """
    }

    /// The same in what the parts of a list tell of themselves before it begins.
    static func sampleErasure(of user: AppUser) -> SQL {
        """
        UPDATE registry.campaign_part p SET sample = array_remove(p.sample, \(user.user.rawValue))
        FROM registry.campaign c
        WHERE c.id = p.campaign AND c.app = \(user.app.rawValue) AND \(user.user.rawValue) = ANY (p.sample)
        """
    }
}
