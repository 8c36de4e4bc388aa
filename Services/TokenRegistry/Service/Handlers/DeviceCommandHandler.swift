import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RegistryStore
import ServiceConnections
import ServiceKit

/// Applies device commands of feedback and upstream. Runs of one verb in a batch are applied together, in order.
struct DeviceCommandHandler: StageHandler {
    private let store: RegistrationStore
    private let memberships: MembershipStore
    private let fids: FIDStore
    private let campaigns: CampaignStore
    private let apps: ActiveApps
    private let logger: Logger

    init(store: RegistrationStore, apps: ActiveApps, logger: Logger) {
        self.store = store
        memberships = MembershipStore(store.database)
        fids = FIDStore(store.database)
        campaigns = CampaignStore(store.database)
        self.apps = apps
        self.logger = logger
    }

    func decode(_ inbound: Inbound) throws(WireError) -> DeviceCommand {
        let command = try DeviceCommand.decode(wireBody: inbound.body)
        try command.check(routingKey: inbound.routingKey)
        try Self.check(command)
        return command
    }

    /// Checks a register or unregister command. Throws if its token is not one of the provider's.
    private static func check(_ command: DeviceCommand) throws(WireError) {
        switch command.command {
        case .register(let registrant): _ = try RegistrationRequest(registrant, app: command.app)
        case .unregister(let user, let provider, let environment, let token, _):
            _ = try RegistrationRequest(
                RegistrationPayload(user: user, provider: provider, environment: environment, token: token),
                app: command.app)
        case .deactivate, .suspect, .correct, .membership, .cancel: break
        }
    }

    func handle(_ batch: [Delivery<DeviceCommand>]) async throws -> [Verdict] {
        // One snapshot: an app that is added meanwhile would be done without being carried out.
        let apps = apps.all
        let known = batch.map(\.message).filter { apps.contains($0.app) }
        for run in known.runs(by: \.command.verb) {
            try await Outage.ofDatabase { try await carryOut(run) }
        }
        return batch.map { apps.contains($0.message.app) ? .done : .unknownApp($0.message.app) }
    }

    private func carryOut(_ run: [DeviceCommand]) async throws {
        switch run[0].command.verb {
        case .register: try await register(run)
        case .unregister: try await store.unregister(run.compactMap(\.claim))
        case .deactivate: try await deactivate(run)
        case .suspect: try await suspect(run)
        case .subscribe, .unsubscribe, .tag, .untag: try await change(run)
        case .cancel: try await cancel(run)
        case .correct:
            for command in run {
                guard case .correct(let device, let environment) = command.command else { continue }
                let moved = try await store.correct(device: device, of: command.app, to: environment)
                logger.info(
                    moved ? "Registration moved to its correct environment" : "Registration is inactive; not moved",
                    metadata: command.metadata(
                        of: device, [LogKey.environment: "\(environment.rawValue)"]))
            }
        }
    }

    private func change(_ run: [DeviceCommand]) async throws {
        try await memberships.apply(
            run.compactMap { command in
                guard case .membership(let change) = command.command else { return nil }
                return MembershipStore.Change(app: command.app, change: change)
            })
    }

    /// Cancels campaigns of revoked events. One that has ended, or is unknown, stays as it is: senders skip its pushes.
    private func cancel(_ run: [DeviceCommand]) async throws {
        for command in run {
            guard case .cancel(let campaign) = command.command else { continue }
            let isChanged = try await campaigns.apply(.cancel, to: campaign, of: command.app)
            logger.info(
                isChanged
                    ? "Campaign of a revoked event cancelled" : "Campaign of a revoked event has ended or is unknown",
                metadata: command.logMetadata.merging([
                    LogKey.app: "\(command.app)", "campaign": "\(Hexadecimal.text(of: campaign))",
                ]) { $1 })
        }
    }

    private func register(_ run: [DeviceCommand]) async throws {
        let taken = try await store.register(run.compactMap(\.claim))
        for command in run {
            guard let claim = command.claim else { continue }
            // A missing id is harmless: the registration was moved to its correct environment before, or is void.
            let isTaken = taken.contains(claim.device)
            Counter(
                label: "heliograph_registry_registrations_total",
                dimensions: [("app", claim.app.rawValue), ("taken", isTaken ? "yes" : "no")]
            ).increment()
            if !isTaken {
                logger.debug(
                    "Registration not stored as sent: its environment was corrected, or a later change is known",
                    metadata: command.metadata(of: claim.device))
            }
        }
    }

    private func suspect(_ run: [DeviceCommand]) async throws {
        let answer = try await fids.suspect(run.compactMap(\.suspicion))
        for command in run {
            guard let device = command.suspicion?.device, answer.ended.contains(device) else { continue }
            logger.info(
                "FID ended; the provider refused it again after a day", metadata: command.metadata(of: device))
        }
        for halt in answer.halted {
            logger.error(
                "Provider refuses too many FIDs of an app version but accepts their tokens; using tokens for a day",
                metadata: [
                    "app": "\(halt.cohort.app)", "app_version": "\(halt.cohort.version)",
                    "people": "\(halt.suspected)",
                ])
        }
    }

    private func deactivate(_ run: [DeviceCommand]) async throws {
        let invalidations = run.compactMap(\.invalidation)
        let gone = try await store.deactivate(invalidations)
        for command in run {
            guard let invalidation = command.invalidation else { continue }
            let applied = gone.contains(invalidation.device)
            Counter(
                label: "heliograph_registry_deactivations_total",
                dimensions: [("app", command.app.rawValue), ("applied", applied ? "yes" : "no")]
            ).increment()
            logger.info(
                applied
                    ? "Registration deactivated" : "Registration is newer or inactive; invalidation ignored",
                metadata: command.metadata(of: invalidation.device, [LogKey.reason: "\(invalidation.reason)"]))
        }
    }
}

extension DeviceCommand {
    /// The metadata of a log line about this command and a device.
    fileprivate func metadata(of device: UUID, _ more: Logger.Metadata = [:]) -> Logger.Metadata {
        var metadata = logMetadata.merging(more) { $1 }
        metadata[LogKey.app] = .string(app.rawValue)
        metadata[LogKey.device] = .string(Hexadecimal.text(of: device))
        return metadata
    }
}

extension Verdict {
    /// Dead-letters a message of an app that is not configured.
    static func unknownApp(_ app: AppID) -> Verdict {
        let detail = "app “\(app)” is not configured; add it to the apps file"
        return Verdict(.deadLetter(Reason(code: "unknown-app", detail: detail)))
    }
}

extension DeviceCommand {
    /// The request in a `register` or `unregister` command, which ``DeviceCommandHandler/decode(_:)`` has checked.
    fileprivate var claim: RegistrationRequest? {
        switch command {
        case .register(let registrant): try? RegistrationRequest(registrant, app: app)
        case .unregister(let user, let provider, let environment, let token, let at):
            RegistrationRequest(
                app: app, user: user, provider: provider, environment: environment, token: token, at: at)
        case .deactivate, .suspect, .correct, .membership, .cancel: nil
        }
    }

    fileprivate var suspicion: FIDStore.RefusedFID? {
        guard case .suspect(let device, let at, let reason) = command else { return nil }
        return FIDStore.RefusedFID(app: app, device: device, at: at, reason: reason)
    }

    fileprivate var invalidation: Invalidation? {
        guard case .deactivate(let device, let since, let reason) = command else { return nil }
        return Invalidation(app: app, device: device, notRegisteredSince: since, reason: reason)
    }
}

extension Array {
    /// Splits into maximal runs of neighbours with the same key.
    func runs<Key: Equatable>(by key: (Element) -> Key) -> [[Element]] {
        reduce(into: []) { runs, element in
            if let last = runs.last, key(last[0]) == key(element) {
                runs[runs.count - 1].append(element)
            } else {
                runs.append([element])
            }
        }
    }
}
