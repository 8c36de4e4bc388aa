package import Postgres
import FoundationEssentials
import PushProtocol

extension CampaignStore {
    /// Reads the next page of an audience after `position`. A page has about `limit` devices of all users, or at most
    /// `limit` users of a group or list. All devices of a user are on one page.
    ///
    /// - Parameter upper: the last user that the page may include; `nil`: no bound.
    package func page(
        of campaign: Campaign, after position: String, upTo upper: String?, limit: Int
    ) async throws(PostgresError) -> CampaignPage {
        let span = AudienceQueries.Span(after: position, upTo: upper)
        switch campaign.audience.members {
        case .everyone: return try await everyone(in: span, of: campaign, limit: limit)
        case .group(let group):
            return try await members(
                AudienceQueries.members(of: group, in: campaign.app, span: span, limit: limit), of: campaign,
                limit: limit)
        case .users:
            return try await members(
                AudienceQueries.listed(by: campaign.id, span: span, limit: limit), of: campaign, limit: limit)
        }
    }

    private func everyone(
        in span: AudienceQueries.Span, of campaign: Campaign, limit: Int
    ) async throws(PostgresError) -> CampaignPage {
        let last = try await database.query(AudienceQueries.end(of: span, in: campaign.app, limit: limit)).first
        let end = try last?.decode(String.self, at: 0)
        let page = AudienceQueries.Span(after: span.after, upTo: end ?? span.upTo)
        var members: [CampaignPage.Member] = []
        var count = 0
        for row in try await database.query(AudienceQueries.everyone(in: page, of: campaign)) {
            let readable = UnreadableRegistrations.readOrSkip(of: campaign.app) { try Registration(row, tokens) }
            guard let registration = readable else { continue }
            if members.last?.user != registration.user { members.append(.init(user: registration.user, devices: [])) }
            members[members.count - 1].devices.append(registration)
            count += 1
        }
        return CampaignPage(members: members, end: end, looked: end == nil ? count : max(limit, count))
    }

    private func members(
        _ query: SQL, of campaign: Campaign, limit: Int
    ) async throws(PostgresError) -> CampaignPage {
        let users = try await database.query(query).column(UserID.self)
        var devices: [UserID: [Registration]] = [:]
        if !users.isEmpty {
            for row in try await database.query(AudienceQueries.devices(of: users, of: campaign)) {
                let readable = UnreadableRegistrations.readOrSkip(of: campaign.app) { try Registration(row, tokens) }
                guard let registration = readable else { continue }
                devices[registration.user, default: []].append(registration)
            }
        }
        var members = users.map { CampaignPage.Member(user: $0, devices: devices[$0, default: []]) }
        // With a filter, users without a matching device do not belong to the audience. Without one, users without
        // devices do.
        if campaign.audience.devices != nil { members.removeAll(where: \.devices.isEmpty) }
        let end = users.count < limit ? nil : users.last?.rawValue
        return CampaignPage(members: members, end: end, looked: users.count)
    }
}
