package import FoundationEssentials
import Synchronization

/// A file that holds a credential, and the last of its contents that was of use.
///
/// It is read when it is looked at, never when somebody sends: what was replaced by something malformed goes on serving.
package final class CredentialFile<Value: Sendable>: WatchedCredential {
    /// Reads the contents and proves them, by minting or signing with them. Its error names the file and what is wrong
    /// with it, and quotes nothing.
    package typealias Take = @Sendable (_ contents: [UInt8]) async throws(CredentialError) -> Value

    private struct State {
        var value: Value?
        var problem: CredentialError?
        /// What was there when it was last looked at, file by file; absent before the first look.
        var seen: [FileIdentity?]?
        /// The contents that `value` came from.
        var contents: [[UInt8]]?
    }

    package let path: String
    private let paths: [String]
    private let files: FileAccess
    private let take: Take
    private let state = Mutex(State())

    /// `others` belong to the credential as well: a change of any is a change of it. `take` is given what `path` holds.
    package init(path: String, others: [String] = [], files: FileAccess = .system, take: @escaping Take) {
        self.path = path
        paths = [path] + others
        self.files = files
        self.take = take
    }

    /// The credential in force.
    ///
    /// - Throws: why there never was one; ``CredentialError/refused(reason:)`` before the first look.
    package func value() throws(CredentialError) -> Value {
        let (value, problem) = state.withLock { ($0.value, $0.problem) }
        guard let value else { throw problem ?? .refused(reason: "\(path): has not been read yet") }
        return value
    }

    /// What is wrong with the file as it is now, whether or not an older credential is in force.
    package var problem: CredentialError? { state.withLock { $0.problem } }

    /// Reads the file if it is another than before. Called by one task at a time.
    package func look() async -> CredentialLook {
        // Before the contents: what changes while they are read is looked at again.
        let identities = paths.map(files.identity)
        let (seen, old) = state.withLock { ($0.seen, $0.contents) }
        if let seen, seen == identities { return .unchanged }
        do throws(CredentialError) {
            var contents: [[UInt8]] = []
            for path in paths { contents.append(try read(path)) }
            if contents == old {
                let wasRefused = state.withLock { state in
                    defer { (state.seen, state.problem) = (identities, nil) }
                    return state.problem != nil
                }
                return wasRefused ? .restored : .unchanged
            }
            let value = try await take(contents[0])
            state.withLock { state in
                state = State(value: value, problem: nil, seen: identities, contents: contents)
            }
            return .taken
        } catch {
            let stays = state.withLock { state in
                (state.seen, state.problem) = (identities, error)
                return state.value != nil
            }
            return .refused(error, oldStays: stays)
        }
    }

    private func read(_ path: String) throws(CredentialError) -> [UInt8] {
        guard let contents = files.contents(path) else {
            throw .refused(reason: "\(path): cannot be read; check that it is there, and its permissions")
        }
        return contents
    }
}

/// What a look at a credential's file came to.
package enum CredentialLook: Hashable, Sendable {
    case unchanged
    /// Its new contents are in force.
    case taken
    /// It holds again what was in force all the time.
    case restored
    /// Its new contents are of no use. Told once for each change of the file.
    case refused(CredentialError, oldStays: Bool)
}

/// A ``CredentialFile``, whatever it holds.
package protocol WatchedCredential: Sendable {
    var path: String { get }
    var problem: CredentialError? { get }
    /// When what is in force ends by itself; `nil` for what does not say.
    var expiresAt: Date? { get }
    func look() async -> CredentialLook
}

extension WatchedCredential {
    package var expiresAt: Date? { nil }
}
