/// The pages of the sign-in.
enum SignInPage {
    static func development(target: String) -> Page {
        let roles = Role.allCases.reversed().map { role -> HTML in "<option>\(role.rawValue)</option>" }
        return Page(
            title: "Sign in",
            content: """
                <form class="card" method="post" action="/sign-in"><p>This is a development login: anyone may choose a name and a
                role. Set CONSOLE_LOGIN=oidc elsewhere.</p><input type="hidden" name="target" value="\(target)">
                <label>Name <input name="name" required maxlength="100" value="developer"></label>
                <label>Role <select name="role">\(roles)</select></label><button>Sign in</button></form>
                """)
    }

    /// A link and no form: the content security policy would stop a form's redirect to the issuer.
    static func provider(target: String) -> Page {
        let start = "/sign-in/start?\(FormCoding.text([("target", target)]))"
        return Page(
            title: "Sign in",
            content: """
                <div class="card"><p>The console asks your organisation for your name and role.</p>
                <p>\(Parts.link(start, "Sign in"))</p></div>
                """)
    }

    static func link(_ address: String) -> Page {
        Page(
            title: "A link for support", section: .why,
            content: """
                <p>Anyone with this link sees the event without users and devices, for 24 hours:</p>
                <p><a href="\(address)">\(address)</a></p>
                """)
    }
}
