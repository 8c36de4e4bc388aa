package import FoundationEssentials
import Synchronization

/// A credential file and its last valid contents.
///
/// Read by ``reload()`` only, never while sending. Invalid new contents leave the old credential in use.
package final class CredentialFile<Value: Sendable>: WatchedCredential {
    /// Parses the contents and tests them by minting or signing. Errors name the file and quote nothing of it.
    package typealias Parse = @Sendable (_ contents: [UInt8]) async throws(CredentialError) -> Value

    private struct State {
        var value: Value?
        var problem: CredentialError?
        /// The identity of each file at the last reload; `nil` before the first.
        var seen: [FileIdentity?]?
        var contents: [[UInt8]]?
    }

    package let path: String
    private let paths: [String]
    private let files: FileAccess
    private let parse: Parse
    private let state = Mutex(State())

    /// - Parameter others: further files of the credential, which are also watched for changes.
    package init(path: String, others: [String] = [], files: FileAccess = .system, parse: @escaping Parse) {
        self.path = path
        paths = [path] + others
        self.files = files
        self.parse = parse
    }

    /// The credential in use.
    ///
    /// - Throws: The error of the first reload, or ``CredentialError/refused(reason:)`` before it.
    package func value() throws(CredentialError) -> Value {
        let (value, problem) = state.withLock { ($0.value, $0.problem) }
        guard let value else { throw problem ?? .refused(reason: "\(path): has not been read yet") }
        return value
    }

    /// The error of the current contents, even while an older credential is in use.
    package var problem: CredentialError? { state.withLock { $0.problem } }

    /// Reads the file if it has changed. Not for concurrent calls.
    package func reload() async -> CredentialReload {
        // Before reading, so that a change during the read is seen by the next reload.
        let identities = paths.map(files.identity)
        let (seen, old) = state.withLock { ($0.seen, $0.contents) }
        if let seen, seen == identities { return .unchanged }
        do throws(CredentialError) {
            let contents = try paths.map { path throws(CredentialError) in try read(path) }
            if contents == old {
                let wasRefused = state.withLock { state in
                    defer { (state.seen, state.problem) = (identities, nil) }
                    return state.problem != nil
                }
                return wasRefused ? .restored : .unchanged
            }
            let value = try await parse(contents[0])
            state.withLock { state in
                state = State(value: value, problem: nil, seen: identities, contents: contents)
            }
            return .loaded
        } catch {
            let hasOld = state.withLock { state in
                (state.seen, state.problem) = (identities, error)
                return state.value != nil
            }
            return .refused(error, keepsOld: hasOld)
        }
    }

    private func read(_ path: String) throws(CredentialError) -> [UInt8] {
        guard let contents = files.contents(path) else {
            throw .refused(reason: "\(path): cannot be read; check that it exists, and its permissions")
        }
        return contents
    }
}

package enum CredentialReload: Hashable, Sendable {
    case unchanged
    /// The file changed, and its new credential is in use.
    case loaded
    /// The file contains the credential in use again, after invalid contents.
    case restored
    /// The new contents are invalid. Returned once for each change of the file. With `keepsOld`, the old credential
    /// stays in use; otherwise there is none.
    case refused(CredentialError, keepsOld: Bool)
}

/// A ``CredentialFile`` of any value.
package protocol WatchedCredential: Sendable {
    var path: String { get }
    var problem: CredentialError? { get }
    /// When the credential in use expires; `nil` if it does not.
    var expiresAt: Date? { get }
    func reload() async -> CredentialReload
}

extension WatchedCredential {
    package var expiresAt: Date? { nil }
}
