import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol
import RegistryStore
import ServiceKit

/// Endpoints by which a backend or an operator starts, reads, pauses, resumes and cancels campaigns, by API key.
struct CampaignRoutes: Sendable {
    /// Publishes the first cursors of a campaign, and returns after the broker's confirms.
    ///
    /// - Throws: ``APIError`` if the broker does not confirm them.
    typealias CursorPublisher = @Sendable ([CampaignCursor]) async throws -> Void

    private static let maximumListed = 200

    let store: CampaignStore
    let keys: APIKeyAuthenticator
    /// The configured apps; `nil`: any.
    let apps: ActiveApps?
    let publish: CursorPublisher

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/operator/campaigns") { request, context in
            await keys.answer(request, context, .readCounts) { query in
                let app = try query.app()
                let limit = try query.limit(maximum: Self.maximumListed) ?? 50
                let unfinished = try query.flag("unfinished") ?? false
                return (app, { try await list(of: app, unfinished: unfinished, limit: limit) })
            }
        }
        router.get("v1/operator/campaigns/{campaign}") { request, context in
            await keys.answer(request, context, .readCounts) { query in
                let (app, id) = (try query.app(), try context.uuid(inPath: "campaign"))
                return (app, { try await find(id, of: app).json })
            }
        }
        router.put("v1/operator/campaigns/{campaign}") { request, context in
            await keys.answer(request, context, .sendNotifications) { query in
                let (app, id) = (try query.app(), try context.uuid(inPath: "campaign"))
                return (
                    app,
                    {
                        if let apps, !apps.contains(app) { throw APIError.unknownApp }
                        let body = try await request.read(atMost: CampaignBody.maximumSize, CampaignBody.init)
                        return try await start(body, as: id, of: app)
                    }
                )
            }
        }
        for action in CampaignStore.CampaignAction.allCases {
            router.post("v1/operator/campaigns/{campaign}/\(action.rawValue)") { request, context in
                await keys.answer(request, context, .sendNotifications) { query in
                    let (app, id) = (try query.app(), try context.uuid(inPath: "campaign"))
                    return (app, { try await apply(action, to: id, of: app) })
                }
            }
        }
    }

    private func list(of app: AppID, unfinished: Bool, limit: Int) async throws -> JSONValue {
        let campaigns = try await store.summaries(app: app, unfinished: unfinished, limit: limit)
        return ["campaigns": .array(campaigns.map(\.json))]
    }

    private func find(_ id: UUID, of app: AppID) async throws -> CampaignStore.CampaignSummary {
        guard let campaign = try await store.summary(of: id), campaign.app == app.rawValue else {
            throw APIError(status: .notFound, message: "the app has no such campaign")
        }
        return campaign
    }

    /// Opens a campaign and publishes its cursors. A repeat publishes the cursors of ranges that have not started.
    private func start(_ body: CampaignBody, as id: UUID, of app: AppID) async throws -> JSONValue {
        let taken = APIError(
            status: .conflict,
            message: "the campaign's id belongs to another campaign; give each campaign an id of its own")
        let notification = body.notification(opening: id, of: app, at: .now)
        guard let audience = notification.audience else { throw APIError.failed }
        if let known = try await store.summary(of: id) {
            // A campaign that still collects parts of a list would start without them.
            guard known.app == app.rawValue, known.state != "collecting" else { throw taken }
        }
        let cursors: [CampaignCursor]
        do { cursors = try await store.open(notification, to: audience) } catch is CampaignConflict { throw taken }
        guard let stored = try await store.campaign(id), stored.audience == audience,
            stored.notification.content == notification.content
        else { throw taken }
        try await publish(cursors)
        return try await find(id, of: app).json
    }

    private func apply(
        _ action: CampaignStore.CampaignAction, to id: UUID, of app: AppID
    ) async throws -> JSONValue {
        _ = try await find(id, of: app)
        _ = try await store.apply(action, to: id)
        let campaign = try await find(id, of: app)
        guard campaign.state == action.state else {
            throw APIError(
                status: .conflict,
                message: "the campaign is \(campaign.state); \(action.condition)")
        }
        return campaign.json
    }
}

extension CampaignStore.CampaignAction {
    /// The states in which the action has an effect, for clients.
    fileprivate var condition: String {
        switch self {
        case .pause: "only a running campaign can be paused"
        case .resume: "only a paused campaign can be resumed"
        case .cancel: "a campaign that has ended cannot be cancelled"
        }
    }
}
