import FoundationEssentials
import PushProtocol

/// The key file of a Google service account, as downloaded.
package struct ServiceAccount: Hashable, Sendable {
    package let projectID: String
    package let clientEmail: String
    package let privateKeyID: String
    /// PKCS#8 PEM. Never log it.
    package let privateKey: String
    package let tokenURI: String

    private struct File: Decodable {
        let project_id, client_email, private_key_id, private_key: String
        let token_uri: String?
    }

    /// - Parameter path: the file named in errors.
    package init(_ bytes: [UInt8], path: String) throws(CredentialError) {
        let file: File
        do {
            file = try WireCoding.decode(File.self, from: bytes)
        } catch {
            throw .refused(reason: "\(path): is not a service account's key file: \(error)")
        }
        guard file.project_id.wholeMatch(of: /[a-z0-9][a-z0-9.:-]*/) != nil else {
            throw .refused(reason: "\(path): project_id is not a project id")
        }
        projectID = file.project_id
        clientEmail = file.client_email
        privateKeyID = file.private_key_id
        privateKey = file.private_key
        tokenURI = file.token_uri ?? OAuthGrant.audience
    }

    package static func load(path: String) throws(CredentialError) -> ServiceAccount {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else {
            throw .refused(
                reason: "\(path): the service account's key file cannot be read; check it and its permissions")
        }
        return try ServiceAccount(Array(data), path: path)
    }
}

extension ServiceAccount: CustomStringConvertible, CustomReflectable {
    package var description: String { "service account of \(projectID)" }
    package var customMirror: Mirror { Mirror(self, children: ["projectID": projectID]) }
}
