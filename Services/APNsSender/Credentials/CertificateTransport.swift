import FoundationEssentials
import HTTP2
import Providers
import PushProtocol
import PushSending
import ServiceKit
import Synchronization

/// The connections to one APNs host with one app's push certificate: both transport and credential.
///
/// TLS reads a certificate once. When the files change, ``reload()`` opens new connections with a valid certificate,
/// and keeps the old connections otherwise.
final class CertificateTransport: ProviderTransport, CredentialSource, WatchedCredential {
    typealias Connect = @Sendable (HTTP2Endpoint.ClientCertificate) throws(HTTP2Error) -> HTTP2Client

    private struct OpenConnection: Sendable {
        let certificate: PushCertificate
        let transport: HTTP2Transport
    }

    private struct State {
        var current: OpenConnection?
        /// Added to the transport's generation, so ``generation`` increases across certificates.
        var generationOffset = 0
    }

    private let file: CredentialFile<OpenConnection>
    private let state = Mutex(State())

    /// Opens no connection before the first ``reload()``. `topic` is the app's bundle id.
    init(_ files: APNsCertificate, topic: String, connect: @escaping Connect) {
        let others = files.keyFile == files.certificateFile ? [] : [files.keyFile]
        file = CredentialFile(path: files.certificateFile, others: others) { pem throws(CredentialError) in
            let certificate = try PushCertificate(pem: pem, file: files.certificateFile)
            if let topics = certificate.topics, !topics.contains(topic) {
                let named = topics.sorted().joined(separator: ", ")
                throw .refused(reason: "\(files.certificateFile): is for \(named), not for \(topic)")
            }
            do throws(HTTP2Error) {
                let client = try connect(
                    HTTP2Endpoint.ClientCertificate(certificateFile: files.certificateFile, keyFile: files.keyFile))
                return OpenConnection(
                    certificate: certificate, transport: HTTP2Transport(client: client, provider: .apns))
            } catch {
                throw .refused(reason: "\(files.keyFile): is not the private key of \(files.certificateFile) (PEM)")
            }
        }
    }

    /// The certificate in use; `nil` before a valid one was loaded.
    var certificate: PushCertificate? { state.withLock { $0.current?.certificate } }

    /// The current client, which the owner shuts down. Clients of replaced certificates are shut down here.
    var client: HTTP2Client? { state.withLock { $0.current?.transport.client } }

    // MARK: - CredentialSource

    func current() async throws(CredentialError) -> Credential {
        guard certificate != nil else { throw problem ?? .refused(reason: "\(path): has not been read yet") }
        return Credential(authorization: nil, generation: 0, mintedAt: .zero)
    }

    /// Returns the same certificate, because there is no other one.
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential { try await current() }

    // MARK: - WatchedCredential

    var path: String { file.path }
    var problem: CredentialError? { file.problem }
    var expiresAt: Date? { certificate?.expiresAt }

    func reload() async -> CredentialReload {
        let reload = await file.reload()
        if reload == .loaded, let opened = try? file.value() {
            state.withLock { state in
                if let old = state.current {
                    state.generationOffset += old.transport.generation + 1
                    // Requests in flight complete on the old connections.
                    Task { await old.transport.client.shutdown() }
                }
                state.current = opened
            }
        }
        return reload
    }

    // MARK: - ProviderTransport

    var generation: Int { state.withLock { $0.generationOffset + ($0.current?.transport.generation ?? 0) } }

    func send(
        _ batch: ProviderRequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportResult] {
        guard let transport = state.withLock({ $0.current?.transport }) else {
            return Array(repeating: .failure(.unreachable(reason: "no-certificate")), count: batch.count)
        }
        return await transport.send(batch, authorization: authorization, deadline: deadline, conditions: conditions)
    }

    func reconnect(from generation: Int) {
        let (transport, generationOffset) = state.withLock { ($0.current?.transport, $0.generationOffset) }
        transport?.reconnect(from: generation - generationOffset)
    }
}
