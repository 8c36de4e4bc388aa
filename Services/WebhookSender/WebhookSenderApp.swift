import Messaging
import PushProtocol
import ServiceConnections
import ServiceKit

/// The executable `webhook-sender`: sends reports to the webhooks of apps, signed.
@main
struct WebhookSenderApp {
    static func main() async {
        await ServiceMain.run(
            "webhook-sender", summary: "Sends reports of deliveries, receipts and dead devices to webhooks.",
            keys: .webhookSender, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let settings = try WebhookSettings(context.settings)
        let catalog = try context.apps(using: .webhooks)
        let endpoints = Endpoints(settings: settings, logger: context.logger)
        for app in catalog.apps { try endpoints.add(app) }
        context.readiness.register("webhooks") { endpoints.condition }

        let queues = catalog.apps.flatMap(\.reportWebhooks).map(\.queue)
        let bus = try context.bus(queues: queues)
        let stage = try context.stage(
            queues: queues, policy: { _ in settings.policy }, on: bus,
            handler: ReportHandler(
                endpoints: endpoints, failureTime: settings.failureTime, now: { .now }))
        let reloader = try context.appReloader(
            catalog, using: .webhooks, consuming: { $0.reportWebhooks.map(\.queue) }, publishingTo: []
        ) { app, queues in
            try endpoints.add(app)
            for queue in queues { stage.consume(queue) }
        }
        return ServiceAssembly(bus.services + [stage, reloader])
    }
}
