import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import Rules

/// The requirements document of Monolite HR, row by row. Madrid is UTC+1 in winter.
@Suite(.timeLimit(.minutes(8))) struct MonoliteHRTests {
    static let request = #""request":{"id":"r-1","kind":"vacation","from":"2026-07-01","until":"2026-07-14"}"#

    func run(_ body: (Product) async throws -> Void) async throws {
        try await Product.run("monolite-hr", body)
    }

    /// `user: title` of each recipient, in order.
    func userTitles(_ notifications: [PushProtocol.Notification]) -> [String] {
        notifications.flatMap { notification in
            notification.recipients.map { "\($0.user.rawValue): \(notification.content.title ?? "")" }
        }.sorted()
    }

    func submit(_ number: Int, to product: Product, manager: String = "m") async throws {
        let published = try await product.handleEvent(
            "request.submitted",
            #"{"request":{"id":"r-\#(number)","kind":"vacation"},"worker":{"id":"w","name":"Ana"},"manager":{"id":"\#(manager)"}}"#
        )
        #expect(published.isEmpty)
    }

    // MARK: Request status

    @Test func `an approval notifies the worker with a link and a preview without personal data`()
        async throws
    {
        try await run { (product: Product) async throws in
            let published = try await product.handleEvent(
                "request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(userTitles(published) == ["w: Request approved"])
            let content = try #require(published.first?.content)
            #expect(content.body == "Open the app to see the details.")
            #expect(content.deepLink == "monolitehr://activities/r-1")
            #expect(
                content.data == [
                    "notification_type": "request_status", "entity_type": "request", "entity_id": "r-1",
                ])
            #expect(
                try await product.inboxBodies("w") == [
                    "Your vacation request for July 1, 2026 to July 14, 2026 was approved."
                ])
        }
    }

    @Test func `a rejection notifies the worker, with the reason in the inbox only`() async throws {
        try await run { (product: Product) async throws in
            let published = try await product.handleEvent(
                "request.rejected", "{\(Self.request),\"worker\":{\"id\":\"w\"},\"reason\":\"Too many are away\"}")
            #expect(published.map(\.content.body) == ["Open the app to see the details."])
            #expect(
                try await product.inboxBodies("w") == [
                    "Your vacation request for July 1, 2026 to July 14, 2026 was rejected: Too many are away"
                ])
        }
    }

    @Test func `each recipient gets their own language`() async throws {
        try await run { (product: Product) async throws in
            try await product.setPreferences(PersonalSettings(language: Language("es-MX")), user: "w")
            let published = try await product.handleEvent(
                "request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(userTitles(published) == ["w: Solicitud aprobada"])
            #expect(
                try await product.inboxBodies("w") == [
                    "Tu solicitud (vacation) del 1 de julio de 2026 al 14 de julio de 2026 ha sido aprobada."
                ])
        }
    }

    // MARK: Preferences

    @Test func `the master switch and a type's switch suppress the push, and the inbox keeps it`() async throws {
        try await run { (product: Product) async throws in
            for (user, settings) in [
                ("w1", PersonalSettings(isOn: false)), ("w2", PersonalSettings(types: ["request-status": false])),
                ("w3", PersonalSettings(types: ["announcements": false])),
            ] {
                try await product.setPreferences(settings, user: user)
                let published = try await product.handleEvent(
                    "request.approved", "{\(Self.request),\"worker\":{\"id\":\"\(user)\"}}")
                #expect(userTitles(published) == (user == "w3" ? ["w3: Request approved"] : []))
                #expect(try await product.inbox(user) == [1, 1])
            }
            #expect(try await product.decisionLog("w1") == ["request-approved inbox switched-off"])
            #expect(try await product.decisionLog("w2") == ["request-approved inbox type-off"])
        }
    }

    @Test func `in quiet hours, pushes wait until the end`() async throws {
        try await run { (product: Product) async throws in
            try await product.setPreferences(
                PersonalSettings(
                    quietHours: QuietHours(days: Set(Weekday.allCases), start: clock("12:00"), end: clock("15:00"))),
                user: "w")
            let published = try await product.handleEvent(
                "request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(published.isEmpty)
            product.clock.set(moment("2026-02-26T14:00:00Z"))
            #expect(userTitles(try await product.runWorkers()) == ["w: Request approved"])
        }
    }

    @Test func `quiet hours delay both digests, unless the recipient chose the digest time`() async throws {
        try await run { (product: Product) async throws in
            let quiet = QuietHours(days: Set(Weekday.allCases), start: clock("06:00"), end: clock("14:00"))
            for user in ["w", "m", "chooser"] {
                try await product.setPreferences(
                    PersonalSettings(quietHours: quiet, digestTime: user == "chooser" ? clock("09:00") : nil),
                    user: user)
            }
            for user in ["m", "chooser"] { try await submit(user == "m" ? 1 : 2, to: product, manager: user) }
            try await record("d1", expires: "2026-03-05", in: product)
            // 09:00 in Madrid, the rule's default time.
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            #expect(userTitles(try await product.runWorkers()) == ["chooser: Pending requests"])
            product.clock.set(moment("2026-02-27T12:59:59Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-02-27T13:00:00Z"))
            #expect(userTitles(try await product.runWorkers()) == ["m: Pending requests", "w: Documents expire soon"])
            #expect(
                try await product.decisionLog("w").sorted() == [
                    "document-expiry digest gathered", "document-expiry digest summed-up",
                    "document-expiry hold quiet-hours", "document-expiry push wanted",
                ])
            #expect(try await product.inboxBodies("m").count == 1)
        }
    }

    // MARK: The manager's digest

    @Test func `a manager gets one digest a day at nine, and none without pending requests`()
        async throws
    {
        try await run { (product: Product) async throws in
            for number in 1...3 { try await submit(number, to: product) }
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-02-27T07:59:59Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            let summary = try await product.runWorkers()
            #expect(userTitles(summary) == ["m: Pending requests"])
            #expect(summary.first?.content.body == "Requests wait for your decision.")
            #expect(summary.first?.content.data?["count"] == 3)
            #expect(summary.first?.content.deepLink == "monolitehr://requests/pending")
            #expect(
                try await product.inboxBodies("m") == [
                    "3 requests wait for your decision, the first from Ana (vacation)."
                ])
            for _ in 0..<3 {
                product.clock.advance(.seconds(3600))
                #expect(try await product.runWorkers().isEmpty)
            }
            // Two are decided; one is still pending on the next day.
            for number in 1...2 {
                _ = try await product.handleEvent(
                    number == 1 ? "request.approved" : "request.rejected",
                    Self.request.replacing("r-1", with: "r-\(number)").wrapped(#","worker":{"id":"w"},"reason":null"#))
            }
            product.clock.set(moment("2026-02-28T08:00:01Z"))
            #expect(try await product.runWorkers().map(\.content.data?["count"]) == [1])
            _ = try await product.handleEvent("request.withdrawn", #"{"request":{"id":"r-3"}}"#)
            product.clock.set(moment("2026-03-01T08:00:01Z"))
            #expect(try await product.runWorkers().isEmpty)
            // A new request starts the digest again.
            try await submit(4, to: product)
            product.clock.set(moment("2026-03-02T08:00:01Z"))
            #expect(try await product.runWorkers().map(\.content.data?["count"]) == [1])
        }
    }

    @Test func `each manager's digest comes at their chosen time in their zone`() async throws {
        try await run { (product: Product) async throws in
            try await product.setPreferences(PersonalSettings(digestTime: clock("17:30")), user: "late")
            try await product.setPreferences(PersonalSettings(zone: zone("America/New_York")), user: "far")
            for (number, manager) in ["late", "far", "m"].enumerated() {
                try await submit(number, to: product, manager: manager)
            }
            var digests: [String] = []
            for hour in 0..<24 {
                for line in userTitles(try await product.runWorkers()) { digests.append("\(hour) \(line)") }
                product.clock.advance(.seconds(3600))
            }
            // From noon UTC on: 16:30 UTC, 14:00 UTC (nine in New York) and 08:00 UTC of the next day.
            #expect(digests == ["2 far: Pending requests", "5 late: Pending requests", "20 m: Pending requests"])
        }
    }

    @Test func `a changed digest time applies once, at the new time`() async throws {
        try await run { (product: Product) async throws in
            try await product.setPreferences(PersonalSettings(digestTime: clock("18:00")), user: "m")
            try await submit(1, to: product)
            try await product.setPreferences(PersonalSettings(digestTime: clock("20:00")), user: "m")
            product.clock.set(moment("2026-02-26T17:30:00Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-02-26T19:00:00Z"))
            #expect(userTitles(try await product.runWorkers()) == ["m: Pending requests"])
            // Moved to later today: today's digest is already sent.
            try await product.setPreferences(PersonalSettings(digestTime: clock("21:00")), user: "m")
            product.clock.set(moment("2026-02-26T20:30:00Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-02-27T20:00:00Z"))
            #expect(userTitles(try await product.runWorkers()) == ["m: Pending requests"])
        }
    }

    @Test func `a decision that arrives before its request leaves nothing pending`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.handleEvent(
                "request.approved", Self.request.wrapped(#","worker":{"id":"w"}"#), at: "2026-02-26T11:00:05Z")
            try await submit(1, to: product)
            product.clock.set(moment("2026-02-27T08:00:01Z"))
            // The request has no time, so its arrival time applies: it is later than the decision and counts.
            #expect(try await product.runWorkers().count == 1)
            _ = try await product.handleEvent(
                "request.withdrawn", #"{"request":{"id":"r-2"}}"#, at: "2026-02-27T08:00:05Z")
            _ = try await product.handleEvent(
                "request.submitted",
                #"{"request":{"id":"r-2","kind":"x"},"worker":{"id":"w","name":"A"},"manager":{"id":"n"}}"#,
                at: "2026-02-27T08:00:04Z")
            #expect(try await product.decisionLog("n") == ["pending-requests drop done"])
        }
    }

    // MARK: Documents

    func record(_ id: String, expires: String, in product: Product) async throws {
        let published = try await product.handleEvent(
            "document.recorded",
            #"{"document":{"id":"\#(id)","kind":"Permit \#(id)","expires_on":"\#(expires)"},"worker":{"id":"w"}}"#)
        #expect(published.isEmpty)
    }

    @Test func `thirty days before expiry, the owner gets the number of documents and the first date`() async throws {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-04-10", in: product)
            try await record("d2", expires: "2026-04-08", in: product)
            try await record("d3", expires: "2026-12-31", in: product)
            // 8 April is thirty days after 9 March.
            product.clock.set(moment("2026-03-09T07:59:59Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-03-09T08:00:00Z"))
            let first = try await product.runWorkers()
            #expect(first.map(\.content.data?["count"]) == [1])
            #expect(first.map(\.content.data?["nearest"]) == ["2026-04-08"])
            product.clock.set(moment("2026-03-10T12:00:00Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-03-11T08:00:00Z"))
            let second = try await product.runWorkers()
            #expect(second.map(\.content.data?["count"]) == [2])
            #expect(second.map(\.content.data?["nearest"]) == ["2026-04-08"])
            #expect(
                try await product.inboxBodies("w") == [
                    "1 document expires soon, the first on April 8, 2026: Permit d2",
                    "2 documents expire soon, the first on April 8, 2026: Permit d2",
                ])
            // The same document sends no second warning.
            for day in 12...31 {
                product.clock.set(moment("2026-03-\(day)T08:00:00Z"))
                #expect(try await product.runWorkers().isEmpty)
            }
        }
    }

    @Test func `a renewal cancels the warning, and a corrected date moves it`() async throws {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-04-08", in: product)
            try await record("d2", expires: "2026-04-08", in: product)
            _ = try await product.handleEvent("document.renewed", #"{"document":{"id":"d1"}}"#)
            try await record("d2", expires: "2026-04-18", in: product)
            product.clock.set(moment("2026-03-09T09:00:00Z"))
            #expect(try await product.runWorkers().isEmpty)
            product.clock.set(moment("2026-03-19T08:00:00Z"))
            #expect(try await product.runWorkers().map(\.content.data?["count"]) == [1])
        }
    }

    @Test func `a document with fewer days left is warned about the next morning, an expired one never`()
        async throws
    {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-03-05", in: product)
            try await record("d2", expires: "2026-02-20", in: product)
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            #expect(try await product.runWorkers().map(\.content.data?["count"]) == [1])
            #expect(try await product.decisionLog("w").contains("document-expiry drop too-late"))
        }
    }

    // MARK: Announcements

    @Test func `an announcement goes to all employees, by their preferences`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.handleEvent("staff.listed", #"{"employees":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#)
            _ = try await product.handleEvent("employee.hired", #"{"employee":{"id":"d"}}"#)
            _ = try await product.handleEvent("employee.left", #"{"employee":{"id":"b"}}"#)
            try await product.setPreferences(PersonalSettings(types: ["announcements": false]), user: "c")
            let published = try await product.handleEvent(
                "announcement.published", #"{"announcement":{"id":"x","title":"Party","text":"In the yard"}}"#)
            #expect(userTitles(published) == ["a: Party", "d: Party"])
            #expect(published.map(\.lane) == [.bulk])
            #expect(try await product.inbox("c") == [1, 1])
            #expect(try await product.inbox("b") == [0, 0])
        }
    }

    @Test func `a repeated announcement has the same recipients and ids`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.handleEvent("staff.listed", #"{"employees":[{"id":"a"},{"id":"b"}]}"#)
            let text = #"{"announcement":{"id":"x","title":"Party","text":"In the yard"}}"#
            let first = try await product.handleEvent("announcement.published", text, id: "x")
            _ = try await product.handleEvent("employee.hired", #"{"employee":{"id":"c"}}"#)
            _ = try await product.handleEvent("employee.left", #"{"employee":{"id":"a"}}"#)
            #expect(try await product.handleEvent("announcement.published", text, id: "x") == first)
        }
    }
}

extension String {
    /// These members and some more, as an object.
    fileprivate func wrapped(_ more: String) -> String { "{\(self)\(more)}" }
}
