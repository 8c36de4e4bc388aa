import HTTPAuth
import HTTPTypes

/// A page's title and content, and the frame around them.
struct Page: Sendable {
    enum Section: String, CaseIterable, Sendable {
        case why, rules, live, audit

        var title: String {
            switch self {
            case .why: "Why"
            case .rules: "Rules"
            case .live: "Live"
            case .audit: "Audit"
            }
        }

        var path: String { self == .why ? "/" : "/\(rawValue)" }

        /// The role that the section needs.
        var role: Role {
            switch self {
            case .why: .support
            case .rules, .live: .look
            case .audit: .operate
            }
        }
    }

    var title: String
    var section: Section?
    var content: HTML
    /// Seconds until the browser loads the page again; the person chooses it.
    var refresh: Int?

    /// - Parameters:
    ///   - session: `nil` before the sign-in and for support links.
    ///   - formToken: the token of the session's forms.
    func document(for session: Session?, formToken: String) -> HTML {
        let reload: HTML? = refresh.map { "<meta http-equiv=\"refresh\" content=\"\($0)\">" }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">\(reload)
            <title>\(title) – Heliograph</title><link rel="stylesheet" href="/console.css"></head>
            <body><a class="skip" href="#content">Skip to content</a>
            <header><p class="brand">Heliograph</p>\(session.map(navigation))\(session.map { person($0, formToken) })</header>
            <main id="content"><h1>\(title)</h1>
            \(content)
            </main></body></html>

            """
    }

    private func navigation(_ session: Session) -> HTML {
        let items = Section.allCases.filter { $0.role <= session.role }.map { item -> HTML in
            let current: HTML = item == section ? " aria-current=\"page\"" : ""
            return "<li><a href=\"\(item.path)\"\(current)>\(item.title)</a></li>"
        }
        return "<nav aria-label=\"Sections\"><ul>\(items)</ul></nav>"
    }

    private func person(_ session: Session, _ formToken: String) -> HTML {
        """
        <form class="person" method="post" action="/sign-out"><span>\(session.name) · \(session.role.rawValue)</span>
        <input type="hidden" name="form_token" value="\(formToken)"><button>Sign out</button></form>
        """
    }
}

extension Page {
    init(_ error: APIError) {
        self.init(
            title: error.status == .notFound
                ? "Not found" : error.status == .forbidden ? "Not allowed" : "Not possible",
            content: "<p role=\"alert\">\(error.message)</p>")
    }
}
