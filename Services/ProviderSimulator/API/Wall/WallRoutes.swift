import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol
import ServiceLifecycle

/// The phone wall: one page, its style and its script, and the stream of what the phones get.
///
/// Everything on the page came from outside, so it is put there as text by the script, and the browser is told to run,
/// load and talk to nothing but this port.
struct WallRoutes: Sendable {
    let wall: PhoneWall
    let showsRemoteImages: Bool

    /// Phones in one event: few enough that the first are on the screen before the last are read.
    private static let phonesAtOnce = 100
    /// The least between two events, so that a flood of pushes does not become one of events.
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

    /// Server-sent events (HTML, "Server-sent events"): everything there is, then what changes, until the browser leaves
    /// or the process stops.
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

    /// One change as JSON, which never holds a line break.
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
