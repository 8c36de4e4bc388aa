import PushProtocol

/// The first page: find an event or a person.
enum SearchPage {
    static func page(apps: [AppID]) -> Page {
        let options = apps.map { app -> HTML in "<option>\(app.rawValue)</option>" }
        return Page(
            title: "Why did I (not) get it?", section: .why,
            content: """
                <div class="cards">
                <form class="card" action="/event"><h2>An event</h2>
                <label>App <select name="app">\(options)</select></label>
                <label>Event id, as the upstream service sent it <input name="id" required maxlength="255" autocomplete="off"></label>
                <button>Show the event</button></form>
                <form class="card" action="/person"><h2>A person</h2>
                <label>App <select name="app">\(options)</select></label>
                <label>User id <input name="user" required maxlength="256" autocomplete="off"></label>
                <button>Show the person</button></form>
                </div>
                """)
    }
}
