import FoundationEssentials
import HTTP2
import PushSending
import ServiceKit
import Synchronization

/// The connections that one app's push certificate opens to one of APNs' hosts: their transport, and at once what proves
/// who sends.
///
/// TLS reads a certificate once, so one that changes needs new connections: ``look()`` makes them when the files have
/// changed and are of use to the app, and keeps the old ones when they are not.
final class CertifiedConnection: ProviderTransport, CredentialSource, WatchedCredential {
    typealias Connect = @Sendable (HTTP2Endpoint.ClientCertificate) throws(HTTP2Error) -> HTTP2Client

    private struct Opened: Sendable {
        let certificate: PushCertificate
        let transport: HTTP2Transport
    }

    private struct State {
        var current: Opened?
        /// What ``generation`` was when `current` began.
        var base = 0
    }

    private let file: CredentialFile<Opened>
    private let state = Mutex(State())

    /// There is no connection before the first ``look()``. `topic` is the app's bundle id.
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
                return Opened(certificate: certificate, transport: HTTP2Transport(client: client))
            } catch {
                throw .refused(reason: "\(files.keyFile): is not the private key of \(files.certificateFile) (PEM)")
            }
        }
    }

    /// The one in force; `nil` when there never was one of use.
    var certificate: PushCertificate? { state.withLock { $0.current?.certificate } }

    /// The owner of these connections shuts it down; one that a new certificate replaces is shut down here.
    var client: HTTP2Client? { state.withLock { $0.current?.transport.client } }

    // MARK: - CredentialSource

    func current() async throws(CredentialError) -> Credential {
        guard certificate != nil else { throw problem ?? .refused(reason: "\(path): has not been read yet") }
        return Credential(authorization: nil, generation: 0, mintedAt: .zero)
    }

    /// A certificate has no second one to offer: what was refused is refused again.
    func replacing(_ refused: Credential) async throws(CredentialError) -> Credential { try await current() }

    // MARK: - WatchedCredential

    var path: String { file.path }
    var problem: CredentialError? { file.problem }
    var expiresAt: Date? { certificate?.expiresAt }

    func look() async -> CredentialLook {
        let look = await file.look()
        if look == .taken, let opened = try? file.value() {
            state.withLock { state in
                if let old = state.current {
                    state.base += old.transport.generation + 1
                    // What is in flight is answered on the old connections.
                    Task { await old.transport.client.shutdown() }
                }
                state.current = opened
            }
        }
        return look
    }

    // MARK: - ProviderTransport

    var generation: Int { state.withLock { $0.base + ($0.current?.transport.generation ?? 0) } }

    func send(
        _ batch: RequestBatch, authorization: String?, deadline: Duration, conditions: SendConditions
    ) async -> [TransportAnswer] {
        guard let transport = state.withLock({ $0.current?.transport }) else {
            return Array(repeating: .failure(.unreachable(reason: "no-certificate")), count: batch.count)
        }
        return await transport.send(batch, authorization: authorization, deadline: deadline, conditions: conditions)
    }

    func reconnect(from generation: Int) {
        let (transport, base) = state.withLock { ($0.current?.transport, $0.base) }
        transport?.reconnect(from: generation - base)
    }
}
