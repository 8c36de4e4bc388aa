import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceLifecycle
import Synchronization

/// `GET /v1/inbox/stream`: new and removed items of the caller's inbox as server-sent events (WHATWG HTML §9.2).
final class StreamRoutes: Sendable {
    /// The maximum number of streams in a process, per user and in total.
    static let maximumPerUser = 10
    static let maximumStreams = 10_000
    /// The maximum duration of a stream. The client then reconnects with a valid token.
    static let lifetime = Duration.seconds(900)
    /// How long clients wait before they reconnect, in milliseconds.
    static let retry = 2000

    private let inboxFeed: InboxFeed
    private let currentRules: CurrentRules
    private let gate: BearerAuthenticator
    private let uptime: @Sendable () -> ContinuousClock.Instant
    private let open = Mutex<(all: Int, of: [PersonKey: Int])>((0, [:]))

    init(
        inboxFeed: InboxFeed, currentRules: CurrentRules, gate: BearerAuthenticator,
        uptime: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.inboxFeed = inboxFeed
        self.currentRules = currentRules
        self.gate = gate
        self.uptime = uptime
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/inbox/stream") { request, context in
            await self.gate.answer(request, context) { caller in
                let person = PersonKey(caller)
                let listener = try await self.inboxFeed.listener(person, after: try self.place(request))
                let slot = try self.slot(person)
                return Response(
                    status: .ok,
                    headers: [
                        .contentType: "text/event-stream; charset=utf-8", .cacheControl: "no-store",
                        // Disables the buffering of proxies.
                        .accelBuffering: "no",
                    ],
                    body: ResponseBody { writer in
                        defer { slot.leave() }
                        await self.write(to: &writer, listener)
                        try await writer.finish(nil)
                    })
            }
        }
    }

    /// The position of the client's last event.
    private func place(_ request: Request) throws(APIError) -> FeedCursor? {
        guard let text = request.headers[.lastEventID], !text.isEmpty else { return nil }
        guard let place = FeedCursor(text) else {
            throw APIError(
                status: .badRequest,
                message: "the header Last-Event-ID is not an id of this stream; leave it out to start now")
        }
        return place
    }

    /// Writes until the client disconnects or is too slow, ``lifetime`` ends, or the service shuts down.
    private func write(to writer: inout any ResponseBodyWriter, _ listener: InboxFeedStore.Listener) async {
        let end = uptime() + Self.lifetime
        var listener = listener
        var text = "retry: \(Self.retry)\n\n"
        while true {
            if !text.isEmpty {
                // The client has disconnected.
                guard await Self.write(text, to: &writer) else { return }
            }
            guard uptime() < end else { return }
            let word = await cancelWhenGracefulShutdown { [inboxFeed, listener] in await inboxFeed.next(for: listener) }
            switch word {
            case .news(let entries, let last):
                text = entries.map(event).joined()
                listener.after = last
            case .nothing: text = ":\n\n"
            case .end: return
            }
        }
    }

    private static func write(_ text: String, to writer: inout any ResponseBodyWriter) async -> Bool {
        (try? await writer.write(ByteBuffer(string: text))) != nil
    }

    private func event(_ entry: InboxFeedStore.Entry) -> String {
        let name: String
        let value: JSONValue
        switch entry.change {
        case .new(let item):
            let rendered = item.rendered
            let type = currentRules.ruleSets[rendered.app]?.rule(named: rendered.rule)?.policy.type
            (name, value) = ("item", item.json(type: type))
        case .removed(let id):
            (name, value) = ("removed", ["id": .string(id.uuidString.lowercased())])
        }
        // JSON has no raw newline, and a decoded value always encodes.
        let data = (try? WireCoding.text(value)) ?? ""
        return "event: \(name)\nid: \(entry.place.text)\ndata: \(data)\n\n"
    }

    /// Reserves a slot for one stream. Throws a 429 or a 503 if none is free.
    private func slot(_ person: PersonKey) throws(APIError) -> StreamSlot {
        let refusal = open.withLock { open -> APIError? in
            guard open.of[person, default: 0] < Self.maximumPerUser else {
                return APIError(
                    status: .tooManyRequests, message: "you have \(Self.maximumPerUser) streams open; close one",
                    retryAfter: Int(Self.heartbeatSeconds))
            }
            guard open.all < Self.maximumStreams else {
                return APIError(status: .serviceUnavailable, message: "too many streams are open; try again later")
            }
            open.all += 1
            open.of[person, default: 0] += 1
            return nil
        }
        if let refusal { throw refusal }
        return StreamSlot { [weak self] in
            self?.open.withLock { open in
                open.all -= 1
                let left = (open.of[person] ?? 1) - 1
                open.of[person] = left == 0 ? Optional.none : left
            }
        }
    }

    private static var heartbeatSeconds: Int64 { InboxFeed.heartbeat.components.seconds }
}

/// A reserved slot, released exactly once. A response may be dropped before its body is written.
private final class StreamSlot: Sendable {
    private let give: @Sendable () -> Void
    private let isGiven = Mutex(false)

    init(_ give: @escaping @Sendable () -> Void) { self.give = give }

    deinit { leave() }

    func leave() {
        let isFirst = isGiven.withLock { given in
            defer { given = true }
            return !given
        }
        if isFirst { give() }
    }
}

extension HTTPField.Name {
    fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID")!
    fileprivate static let accelBuffering = HTTPField.Name("X-Accel-Buffering")!
}
