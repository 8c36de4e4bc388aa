import HTTP2
import Logging
import Providers
import PushProtocol
import PushSending
import Synchronization

/// An app's gateway to the push services of its browsers. Divides requests by push service.
struct WebPushGateway: PushGateway {
    let app: AppID
    let account: VAPIDAccount
    let pool: OriginPool
    let site: WebPushSite
    let policy: WebPushEndpoint.Policy
    let clock: SenderClock
    let logger: Logger

    func render(_ push: Push) -> any PushRendering {
        OriginRenderings(push, site: site, policy: policy, now: clock.now())
    }

    func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult] {
        do throws(CredentialError) {
            _ = try account.file.value()
        } catch {
            return requests.map { _ in .halted(reason: "\(error)") }
        }
        var results = [SendResult](
            repeating: .rejectedLocally(LocalRejection("malformed-subscription", suspectToken: true)),
            count: requests.count)
        var groups: [String: (endpoint: WebPushEndpoint, indices: [Int])] = [:]
        for (index, request) in requests.enumerated() {
            // A probe of the route: the key was read, and there is nothing else to test.
            if request.target.token.secret.isEmpty {
                results[index] = .settled(.skipped(reason: "probe"))
            } else if let endpoint = WebPushEndpoint.read(from: request.target.token, policy: policy) {
                groups[endpoint.origin, default: (endpoint, [])].indices.append(index)
            }
        }
        await withTaskGroup { tasks in
            for (endpoint, indices) in groups.values {
                tasks.addTask {
                    let part = indices.map { requests[$0] }
                    return (indices, await send(part, of: renderings, to: endpoint, in: lane, mayStart: mayStart))
                }
            }
            for await (indices, part) in tasks {
                for (index, result) in zip(indices, part) { results[index] = result }
            }
        }
        return results
    }

    /// Sends requests to one push service.
    private func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], to endpoint: WebPushEndpoint, in lane: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult] {
        let origin: Origin
        do throws(HTTP2Error) {
            guard let acquired = try pool.acquire(endpoint) else {
                return requests.map { _ in .deferred(reason: "too-many-push-services") }
            }
            origin = acquired
        } catch {
            return requests.map { _ in .deferred(reason: "client-misconfigured") }
        }
        defer { pool.release(origin) }
        let permit = origin.state.withLock { $0.admit(now: clock.uptime()) }
        let count: Int
        switch permit {
        case .allowed: count = requests.count
        case .probe: count = 1
        case .blocked(let pause, let reason):
            return requests.map { _ in .throttled(floor: pause, reason: reason) }
        }
        let rendered = renderings.map { rendering -> any PushRendering in
            (rendering as? OriginRenderings)?.rendering(for: endpoint.origin) ?? rendering
        }
        let results = await origin.gateway.send(
            Array(requests.prefix(count)), of: rendered, in: lane, mayStart: mayStart)
        let now = clock.uptime()
        let (transition, next) = origin.state.withLock { state in
            (state.record(results, isProbe: permit == .probe, now: now), state.pause(now: now))
        }
        log(transition, of: origin)
        // After a probe, the others ask for a permit again.
        return results.map { $0.forRoute(pause: next) } + requests.dropFirst(count).map { _ in .withdrawn }
    }

    private func log(_ transition: CircuitBreaker.Transition?, of origin: Origin) {
        let metadata: Logger.Metadata = ["app": "\(app)", "push_service": "\(origin.name)"]
        switch transition {
        case .opened(.misconfigured(let reason), let pause):
            logger.warning(
                "Push service refuses the app's VAPID key; its pushes wait. Check the key if others refuse it too",
                metadata: metadata.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        case .opened(.unavailable(let reason), let pause):
            logger.info(
                "Push service is unavailable; its pushes wait",
                metadata: metadata.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        case .closed: logger.notice("Push service answers again", metadata: metadata)
        case nil: break
        }
    }
}

/// A push's content, rendered for each push service of its targets.
final class OriginRenderings: PushRendering {
    private let push: Push
    private let site: WebPushSite
    private let policy: WebPushEndpoint.Policy
    private let now: Timestamp
    private let byOrigin = Mutex<[String: WebPushRendering]>([:])

    init(_ push: Push, site: WebPushSite, policy: WebPushEndpoint.Policy, now: Timestamp) {
        self.push = push
        self.site = site
        self.policy = policy
        self.now = now
    }

    func rendering(for origin: String) -> WebPushRendering {
        byOrigin.withLock { renderings in
            if let known = renderings[origin] { return known }
            let rendering = WebPushRendering(
                push, codec: WebPushCodec(origin: origin, site: site, policy: policy), now: now)
            renderings[origin] = rendering
            return rendering
        }
    }

    /// Begins nothing: ``WebPushGateway`` takes the rendering for one push service.
    func begin(in batch: inout ProviderRequestBatch) {}

    func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        throw LocalRejection("no-push-service")
    }
}

extension WebPushEndpoint {
    /// The endpoint of the subscription in a token; `nil` if there is none. The codec reads the keys.
    fileprivate static func read(from token: DeviceToken, policy: Policy) -> WebPushEndpoint? {
        guard let json = try? WireCoding.decode(JSONValue.self, from: Array(token.secret.utf8)),
            let text = json["endpoint"]?.string
        else { return nil }
        return try? WebPushEndpoint(text, policy: policy)
    }
}
