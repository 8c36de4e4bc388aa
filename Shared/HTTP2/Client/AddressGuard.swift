import NIOCore
import NIOPosix
import Primitives

/// Refuses connections to addresses, after the name was resolved and before the socket connects. The checked address is
/// the one that the socket uses, so a name that changes its addresses gains nothing.
final class AddressGuard: ChannelOutboundHandler {
    typealias OutboundIn = NIOAny

    struct Refused: Error {}

    private let mayConnect: HTTP2Client.AddressCheck

    init(_ mayConnect: @escaping HTTP2Client.AddressCheck) { self.mayConnect = mayConnect }

    func connect(context: ChannelHandlerContext, to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        guard let bytes = address.ipAddress.flatMap(AddressClass.bytes), mayConnect(bytes) else {
            promise?.fail(Refused())
            return
        }
        context.connect(to: address, promise: promise)
    }

    /// Whether all addresses of a host were refused.
    static func isRefusal(_ error: any Error) -> Bool {
        if error is Refused { return true }
        // A connection error holds one error for each address tried.
        guard let tried = (error as? NIOConnectionError)?.connectionErrors, !tried.isEmpty else { return false }
        return tried.allSatisfy { $0.error is Refused }
    }
}
