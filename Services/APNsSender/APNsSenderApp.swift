import Messaging
import PushProtocol
import PushSending
import ServiceKit

/// The stage in front of APNs: pushes in, outcomes out.
@main
struct APNsSenderApp {
    static let keys: [ConfigurationKey] = .amqp + .apps + APNsSettings.keys

    static func main() async {
        await ServiceMain.run(
            "apns-sender", summary: "Sends pushes to APNs and tells what became of them.", keys: keys, build: build)
    }

    static func build(_ context: ServiceContext) async throws -> ServiceAssembly {
        let apps = try context.apps(using: .apns)
        let settings = try APNsSettings(context.settings)
        let gateways = try await APNsGateways(
            apps: apps, settings: settings, eventLoopGroup: context.eventLoopGroup, logger: context.logger)
        let lanes = PushLanes(gateways.byLane, provider: .apns, logger: context.logger)
        for (key, reason) in gateways.unusable { lanes.shut(key, misconfigured: reason) }
        for key in lanes.keys {
            // One app's trouble must not take the sender from the others.
            context.readiness.register("lane-\(key)") { lanes.trouble(of: key).map { .degraded($0.reason) } ?? .holds }
        }

        let queues = WorkQueue.pushes(.apns, of: apps.ids)
        let bus = try context.bus(queues: queues, publishingTo: [.outcomes], reading: [.senderRevocations])
        let revocations = Revocations(provider: .apns, logger: context.logger)
        let stream = try context.read(
            .senderRevocations, on: bus, apply: revocations.note, onGap: { revocations.noteGap() })
        let handler = PushStageHandler(
            provider: .apns, lanes: lanes, executors: gateways.executors, revocations: revocations,
            logger: context.logger)
        let stage = try context.stage(queues: queues, policy: handler.policy, on: bus, handler: handler)
        let supervisor = LaneSupervisor(lanes: lanes, provider: .apns, pause: stage.pause, resume: stage.resume)

        let credentials = CredentialWatch(gateways.watched, lanes: lanes, provider: .apns, logger: context.logger)
        // The old one still serves: work goes on.
        context.readiness.register("credential-files") { credentials.trouble.map { .degraded($0) } ?? .holds }

        return ServiceAssembly(
            [ProviderClients(gateways.clients, provider: .apns), credentials] + bus.services + stream.services
                + [AfterReading(stream.reader, stage), supervisor])
    }
}
