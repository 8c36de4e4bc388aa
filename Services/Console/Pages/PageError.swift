import HTTPTypes

/// An error that a page shows.
struct PageError: Error, Equatable {
    let status: HTTPResponse.Status
    /// Sentences for the person: the problem and the next step.
    let message: String

    static let formExpired = PageError(
        status: .forbidden,
        message: "The form is too old, or belongs to another sign-in. Go back, load the page again and repeat.")

    static func needs(_ role: Role) -> PageError {
        PageError(
            status: .forbidden,
            message:
                "This needs the role “\(role.rawValue)”. Ask an operator to add you to heliograph-\(role.rawValue).")
    }
}
