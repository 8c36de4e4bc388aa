import Foundation

/// An error of a request.
public enum HeliographError: Error, Equatable, Sendable {
    /// The server refused the request. A repetition without a correction is refused too. `detail` has the cause.
    case refused(status: Int, detail: String)
    /// The server is unavailable or the user exceeds a limit, and the attempts are used up. `status` is nil without an
    /// answer. Try again later.
    case unavailable(status: Int?, detail: String)
    /// The answer is not of the documented form.
    case unreadable(String)
}

extension HeliographError: LocalizedError {
    /// A text for logs. It contains no token.
    public var errorDescription: String? {
        switch self {
        case .refused(let status, let detail): "Refused with status \(status): \(detail)"
        case .unavailable(let status?, let detail): "Unavailable with status \(status): \(detail)"
        case .unavailable(nil, let detail): "No answer: \(detail)"
        case .unreadable(let detail): "Unreadable answer: \(detail)"
        }
    }
}
