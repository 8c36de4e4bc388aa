import FoundationEssentials
import HTTP2
import Logging
import PushSending
import ServiceKit
import Synchronization

/// The connections that one push certificate opens to one of APNs' hosts: their transport, and at once what proves who
/// sends.
///
/// TLS reads a certificate once, so one that changes needs new connections: ``reload()`` makes them when the files have
/// changed and are of use, and keeps the old ones when they are not.
final class CertifiedConnection: ProviderTransport {
    typealias Connect = @Sendable (HTTP2Endpoint.ClientCertificate) throws(HTTP2Error) -> HTTP2Client

    enum Change: Hashable, Sendable {
        case none
        /// New connections carry the certificate that the files hold now.
        case taken
        /// The files are of no use, and why; what was there before stays.
        case refused(String)
    }

    private struct State {
        var current: (client: HTTP2Client, transport: HTTP2Transport, certificate: PushCertificate)?
        /// What the files held when they were last looked at.
        var contents: [[UInt8]?] = []
        var problem: String?
        /// What ``generation`` was when `current` began.
        var base = 0
    }

    private let files: APNsCertificate
    private let connect: Connect
    private let state = Mutex(State())

    /// Reads the files; whether they were of use, ``problem`` tells.
    init(_ files: APNsCertificate, connect: @escaping Connect) {
        self.files = files
        self.connect = connect
        _ = reload()
    }

    /// Why there is no connection at all; `nil` while there is a certificate to connect with.
    var problem: String? { state.withLock { $0.current == nil ? $0.problem : nil } }
    var certificate: PushCertificate? { state.withLock { $0.current?.certificate } }

    /// Looks at the files again.
    func reload() -> Change {
        let contents = [files.certificateFile, files.keyFile].map { path in
            FileManager.default.contents(atPath: path).map { Array($0) }
        }
        return state.withLock { state in
            guard contents != state.contents else { return .none }
            state.contents = contents
            do throws(CredentialError) {
                let next = try open(contents[0])
                if let old = state.current {
                    state.base += old.transport.generation + 1
                    // What is in flight is answered on the old connections.
                    Task { await old.client.shutdown() }
                }
                state.current = next
                state.problem = nil
                return .taken
            } catch {
                state.problem = error.description
                return .refused(error.description)
            }
        }
    }

    private func open(
        _ pem: [UInt8]?
    ) throws(CredentialError) -> (client: HTTP2Client, transport: HTTP2Transport, certificate: PushCertificate) {
        guard let pem else {
            throw .refused(reason: "\(files.certificateFile): cannot be read; check the file and its permissions")
        }
        let certificate = try PushCertificate(pem: pem, file: files.certificateFile)
        do throws(HTTP2Error) {
            let client = try connect(
                HTTP2Endpoint.ClientCertificate(certificateFile: files.certificateFile, keyFile: files.keyFile))
            return (client, HTTP2Transport(client: client), certificate)
        } catch {
            throw .refused(reason: "\(files.keyFile): is not the private key of \(files.certificateFile) (PEM)")
        }
    }

    /// Ends the connections when what is in flight has been answered.
    func shutdown() async {
        let client = state.withLock { $0.current?.client }
        await client?.shutdown()
    }

    // MARK: - ProviderTransport

    var generation: Int { state.withLock { $0.base + ($0.current?.transport.generation ?? 0) } }

    func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, goesOn: @escaping @Sendable (Int) -> Bool
    ) async -> [TransportAnswer] {
        guard let transport = state.withLock({ $0.current?.transport }) else {
            return Array(repeating: .failure(.unreachable(reason: "no-certificate")), count: batch.count)
        }
        return await transport.send(batch, authorization: authorization, deadline: deadline, goesOn: goesOn)
    }

    func reconnect(from generation: Int) {
        let (transport, base) = state.withLock { ($0.current?.transport, $0.base) }
        transport?.reconnect(from: generation - base)
    }
}

/// The proof of one app's lane: a certificate that is there, and that is for the app.
struct CertificateCredential: CredentialSource {
    let connection: CertifiedConnection
    /// The app's bundle id.
    let topic: String

    func current() async throws(CredentialError) -> Credential {
        if connection.problem != nil { _ = connection.reload() }
        if let trouble { throw .refused(reason: trouble) }
        return Credential(authorization: nil, generation: 0, mintedAt: .zero)
    }

    /// A certificate has no second one to offer: what was refused is refused again.
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential { try await current() }

    /// Why the lane cannot send; `nil` while it can.
    var trouble: String? {
        if let problem = connection.problem { return problem }
        guard let topics = connection.certificate?.topics, !topics.contains(topic) else { return nil }
        return "the push certificate is for \(topics.sorted().joined(separator: ", ")), not for \(topic)"
    }
}
