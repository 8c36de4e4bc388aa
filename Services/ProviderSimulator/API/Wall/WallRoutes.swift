import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol
import ServiceLifecycle

/// The phone wall: an HTML page, its style and script, and an event stream.
///
/// The script inserts all payload text as text nodes. The Content-Security-Policy allows no origin but this port.
struct WallRoutes: Sendable {
    let wall: PhoneWall
    let showsRemoteImages: Bool

    /// Phones in one event. Small enough for the browser to draw the first while the next are encoded.
    private static let phonesAtOnce = 100
    /// The minimum interval between two events, so that many pushes make few events.
    private static let pace = Duration.milliseconds(150)

    func addRoutes(to router: Router<BasicRequestContext>) {
        for path: RouterPath in ["", "phones"] {
            router.get(path) { _, _ in page(PackageResources.wall_html, "text/html; charset=utf-8") }
        }
        router.get("wall.css") { _, _ in page(PackageResources.wall_css, "text/css; charset=utf-8") }
        router.get("wall.js") { _, _ in page(PackageResources.wall_js, "text/javascript; charset=utf-8") }
        router.get("wall") { _, _ in
            Response.json(event(wall.changes(after: 0, limit: PhoneWall.maximumPhones), total: wall.count))
        }
        router.get("wall/events") { _, _ in events() }
    }

    private func page(_ bytes: [UInt8], _ type: String) -> Response {
        var headers: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: policy,
        ]
        if let name = HTTPField.Name("Referrer-Policy") { headers[name] = "no-referrer" }
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    private var policy: String {
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            + "img-src 'self' data:\(showsRemoteImages ? " https:" : ""); "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    /// Server-sent events (HTML Living Standard §9.2): all phones first, then changes, until the browser disconnects or
    /// the process stops.
    private func events() -> Response {
        Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { [self] writer in
                var last = 0
                var generation = 0
                for await _ in wall.watch().cancelOnGracefulShutdown() {
                    while true {
                        let changes = wall.changes(after: last, limit: Self.phonesAtOnce)
                        let isSame = changes.generation == generation && changes.phones.isEmpty
                        if isSame, last > 0 { break }
                        (last, generation) = (changes.last, changes.generation)
                        var buffer = ByteBuffer(string: "data: ")
                        buffer.writeBytes(event(changes, total: wall.count))
                        buffer.writeString("\n\n")
                        try await writer.write(buffer)
                        if changes.phones.count < Self.phonesAtOnce { break }
                    }
                    try await Task.sleep(for: Self.pace)
                }
                try await writer.finish(nil)
            })
    }

    /// One event's JSON. The writer escapes line breaks, which would end the event.
    private func event(_ changes: PhoneWall.Changes, total: Int) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("generation", changes.generation)
            writer.member("total", total)
            writer.name("remoteImages")
            writer.value(.bool(showsRemoteImages))
            writer.name("phones")
            writer.array(changes.phones) { $1.write(to: &$0) }
        }
    }
}
