import FoundationEssentials
import PushProtocol

/// The phones and what is on their screens, as one page that needs nothing but itself.
struct PhonesPage: Sendable {
    /// Phones on the page, and notifications on a phone: as many as a person looks at.
    static let maximumPhones = 60
    static let maximumNotifications = 8

    private let screens: [PhoneScreen]
    private let total: Int

    init(_ log: RequestLog) {
        let phones = log.phones
        total = phones.count
        screens = log.screens(of: phones.prefix(Self.maximumPhones), notifications: Self.maximumNotifications)
    }

    var html: String {
        let phones = screens.map(Self.phone).joined(separator: "\n")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <meta http-equiv="refresh" content="2">
            <title>Phones</title>
            <style>\(Self.style)</style>
            </head>
            <body>
            <h1>Phones</h1>
            <p>\(summary)</p>
            <main>
            \(phones)
            </main>
            </body>
            </html>

            """
    }

    private var summary: String {
        if total == 0 { return "Nothing was pushed to any phone yet." }
        return screens.count < total ? "The latest \(screens.count) of \(total) phones." : "\(total) in all."
    }

    private static func phone(_ screen: PhoneScreen) -> String {
        let phone = screen.phone
        let name = "\(phone.id.party == .apns ? "iPhone" : "Android") \(escaped(phone.id.token.prefix(10)))…"
        let app = escaped(phone.last?.verdict.app ?? "")
        let refused = phone.refused > 0 ? " · \(phone.refused) not delivered" : ""
        return """
            <section class="\(phone.id.party.rawValue)">
            <h2>\(name)</h2>
            <p>\(app) · \(phone.delivered) delivered\(refused)</p>
            \(screen.notifications.map(notification).joined(separator: "\n"))
            </section>
            """
    }

    private static func notification(_ shown: ShownNotification) -> String {
        let time = RFC3339.string(from: shown.receivedAt.date)
        if shown.isSilent {
            return "<article class=\"silent\"><time>\(time)</time><p>silent</p>\(data(shown))</article>"
        }
        let badge = shown.badge.map { "<span class=\"badge\">\($0)</span>" } ?? ""
        let lines = [("h3", shown.title), ("h4", shown.subtitle), ("p", shown.body)].compactMap { tag, text in
            text.map { "<\(tag)>\(escaped($0))</\(tag)>" }
        }
        return "<article>\(badge)<time>\(time)</time>\(lines.joined())\(data(shown))</article>"
    }

    private static func data(_ shown: ShownNotification) -> String {
        guard shown.data.object?.isEmpty == false else { return "" }
        var writer = JSONWriter()
        writer.value(shown.data)
        return "<code>\(escaped(String(decoding: writer.bytes, as: UTF8.self)))</code>"
    }

    /// Everything on the page came from outside.
    static func escaped(_ text: some StringProtocol) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    private static let style = """
        body{font:15px/1.4 system-ui,sans-serif;margin:2rem;background:#eceff3;color:#16181d}
        main{display:grid;grid-template-columns:repeat(auto-fill,minmax(18rem,1fr));gap:1.5rem}
        section{background:#16181d;color:#fff;border-radius:2rem;padding:1.5rem 1rem;min-height:16rem}
        section.fcm{border-radius:1rem}
        h1{font-size:1.4rem}h2{font-size:1rem;margin:0}section>p{margin:0 0 1rem;opacity:.7;font-size:.8rem}
        article{background:#fff;color:#16181d;border-radius:.9rem;padding:.6rem .8rem;margin:.5rem 0;overflow-wrap:anywhere}
        article.silent{opacity:.55;border:1px dashed #16181d}
        article h3,article h4,article p{margin:0;font-size:.9rem}article h4{font-weight:500}
        time,code{display:block;font-size:.7rem;opacity:.6}
        .badge{float:right;background:#d6293e;color:#fff;border-radius:1rem;padding:0 .5rem;font-size:.8rem}
        """
}
