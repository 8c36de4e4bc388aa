import HTTPAuth
import HTTPTypes

/// Errors of pages. A page shows the message, so it has whole sentences for a person: the problem and the next step.
extension APIError {
    static let formExpired = APIError(
        status: .forbidden,
        message: "The form is too old, or belongs to another sign-in. Go back, load the page again and repeat.")

    static func needs(_ role: Role) -> APIError {
        APIError(
            status: .forbidden,
            message:
                "This needs the role “\(role.rawValue)”. Ask an operator to add you to heliograph-\(role.rawValue).")
    }
}
