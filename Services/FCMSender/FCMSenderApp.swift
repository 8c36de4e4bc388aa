import Messaging
import PushProtocol
import PushSending
import ServiceKit

/// The stage in front of FCM: pushes in, outcomes out.
@main
struct FCMSenderApp {
    static let keys: [ConfigurationKey] = .amqp + .apps + FCMSettings.keys

    static func main() async {
        await ServiceMain.run(
            "fcm-sender", summary: "Sends pushes to FCM and tells what became of them.", keys: keys, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let apps = try context.apps(using: .fcm)
        let settings = try FCMSettings(context.settings)
        let gateways = try await FCMGateways(
            apps: apps, settings: settings, eventLoopGroup: context.eventLoopGroup, logger: context.logger)
        let lanes = PushLanes(gateways.byLane, provider: .fcm, logger: context.logger)
        for (key, reason) in gateways.unusable { lanes.shut(key, misconfigured: reason) }
        for key in lanes.keys {
            // One app's trouble must not take the sender from the others.
            context.readiness.register("lane-\(key)") {
                (lanes.trouble(of: key) ?? lanes.thirdPartyTrouble(of: key)).map { .degraded($0.reason) } ?? .holds
            }
        }

        let queues = WorkQueue.pushes(.fcm, of: apps.ids)
        let bus = try context.bus(queues: queues, publishingTo: [.outcomes], reading: [.senderRevocations])
        let revocations = Revocations(provider: .fcm, logger: context.logger)
        let stream = try context.read(
            .senderRevocations, on: bus, apply: revocations.note, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: .fcm, lanes: lanes, executors: gateways.executors, revocations: revocations,
            logger: context.logger)
        let stage = try context.stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = LaneSupervisor(lanes: lanes, provider: .fcm, pause: stage.pause, resume: stage.resume)

        let census = QuotaCensus(
            quotas: gateways.quotas, configuration: try context.amqp("quota"), logger: context.logger)

        let accounts = CredentialWatch(gateways.watched, lanes: lanes, provider: .fcm, logger: context.logger)
        // The old account still serves: work goes on.
        context.readiness.register("credential-files") { accounts.trouble.map { .degraded($0) } ?? .holds }

        return ServiceAssembly(
            [ProviderClients(gateways.clients, provider: .fcm), accounts] + bus.services + stream.services
                + [census, AfterReading(stream.reader, stage), supervisor])
    }
}
