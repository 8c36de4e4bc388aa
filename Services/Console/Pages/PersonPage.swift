import HTTPAuth
import PushProtocol

/// A person's waiting and last notifications, devices and choices.
struct PersonPage {
    let app: String
    let user: String
    /// The answers of rules and token-registry; an error's message if one failed, so that the page shows the rest.
    let history: Result<JSONValue, APIError>
    let devices: Result<JSONValue, APIError>
    let preferences: Result<JSONValue, APIError>

    func page(formToken: String, role: Role) -> Page {
        Page(
            title: "Person \(user)", section: .why,
            content: """
                <p>App \(app).</p>
                \(show(history) { waiting($0) })
                \(show(history) { notifications($0) })
                \(show(devices) { devices($0, formToken: formToken, role: role) })
                \(show(preferences) { choices($0) })
                """)
    }

    private func show(_ answer: Result<JSONValue, APIError>, _ part: (JSONValue) -> HTML) -> HTML {
        switch answer {
        case .success(let value): part(value)
        case .failure(let error): "<p role=\"alert\">\(error.message)</p>"
        }
    }

    private func waiting(_ history: JSONValue) -> HTML {
        let rows = (history["waiting"]?.array ?? []).map { item in
            Parts.row([
                Parts.time(item["due_at"]), "\(item["kind"]?.string ?? "")", "\(item["rule"]?.string ?? "")",
                event(item),
            ])
        }
        return Parts.table("Waiting", ["Due", "Kind", "Rule", "Event"], rows, none: "Nothing waits for this person.")
    }

    private func notifications(_ history: JSONValue) -> HTML {
        let meanings = history["reasons"]
        let rows = (history["notifications"]?.array ?? []).map { item in
            let results = (item["results"]?.array ?? []).map { result -> HTML in
                let count = result["count"]?.int ?? 1
                return """
                    <div>\(result["origin"]?.string ?? ""): \(Parts.word(result["disposition"]?.string ?? ""))\(
                    count > 1 ? " × \(count)" : "")\(result["reason"]?.string.map { reason -> HTML in " – \(reason)" })</div>
                    """
            }
            return Parts.row([
                Parts.time(item["decided_at"]), "\(item["rule"]?.string ?? "")", event(item),
                Parts.word(item["answer"]?.string ?? ""), Parts.reason(item["reason"], meanings),
                results.isEmpty ? "–" : "\(results)",
            ])
        }
        return Parts.table(
            "Last notifications", ["Decided", "Rule", "Event", "Answer", "Reason", "Results"], rows,
            none: "No decision about this person is kept. Check the app and the user id.")
    }

    private func event(_ item: JSONValue) -> HTML {
        let id = item["event"]?.string ?? ""
        return Parts.link(Parts.eventPath(id, app: app), id)
    }

    private func devices(_ answer: JSONValue, formToken: String, role: Role) -> HTML {
        let rows = (answer["devices"]?.array ?? []).map { device in
            let id = device["device"]?.string ?? ""
            let state = device["state"]?.string ?? "unreadable"
            let act: HTML = """
                <form method="post" action="/device/deactivate"><input type="hidden" name="form_token" value="\(formToken)">
                <input type="hidden" name="app" value="\(app)"><input type="hidden" name="user" value="\(user)">
                <input type="hidden" name="device" value="\(id)"><button class="danger">Deactivate</button></form>
                """
            return Parts.row([
                "<small>\(id)</small>",
                "\(device["provider"]?.string ?? "") \(device["kind"]?.string ?? "") \(device["environment"]?.string ?? "")",
                "\(device["app_version"]?.string ?? "–")", "\(device["locale"]?.string ?? "–")",
                "\(Parts.word(state)) \(device["reason"]?.string ?? "")", Parts.time(device["registered_at"]),
                role >= .operate && state == "active" ? act : "–",
            ])
        }
        return Parts.table(
            "Devices", ["Device", "Kind", "App version", "Locale", "State", "Registered", "Action"], rows,
            none: "No device is or was registered. The app registers one when the user allows notifications.")
    }

    private func choices(_ answer: JSONValue) -> HTML {
        // The rest describes what the app offers.
        let chosen = Self.lines(of: answer, under: "").filter { name, _ in
            !["about", "critical", "default"].contains(name.split(separator: ".").last)
        }
        let rows = chosen.map { name, value in Parts.row(["\(name)", "\(value)"]) }
        return Parts.table("Choices", ["Setting", "Value"], rows, none: "The app offers no choices.")
    }

    /// The leaves of a document, with dotted names, in the order of the names.
    static func lines(of value: JSONValue, under name: String) -> [(String, String)] {
        switch value {
        case .object(let members):
            members.sorted { $0.key < $1.key }.flatMap {
                lines(of: $0.value, under: name.isEmpty ? $0.key : "\(name).\($0.key)")
            }
        case .null: [(name, "–")]
        case .string(let text): [(name, text)]
        case .bool, .int, .double, .array: [(name, (try? WireCoding.text(value)) ?? "")]
        }
    }
}
