import Foundation
import PushProtocol
import TestSupport
import Testing

@testable import Rules

/// Monolite HR's document, row by row. Madrid is an hour ahead of UTC in winter.
@Suite(.timeLimit(.minutes(8))) struct MonoliteHRTests {
    static let request = #""request":{"id":"r-1","kind":"vacation","from":"2026-07-01","until":"2026-07-14"}"#

    func run(_ body: (Product) async throws -> Void) async throws {
        try await Product.run("monolite-hr", body)
    }

    /// `user: title` of everything in these, in order.
    func told(_ notifications: [PushProtocol.Notification]) -> [String] {
        notifications.flatMap { notification in
            notification.recipients.map { "\($0.user.rawValue): \(notification.content.title ?? "")" }
        }.sorted()
    }

    func submit(_ number: Int, to product: Product, manager: String = "m") async throws {
        let published = try await product.happen(
            "request.submitted",
            #"{"request":{"id":"r-\#(number)","kind":"vacation"},"worker":{"id":"w","name":"Ana"},"manager":{"id":"\#(manager)"}}"#
        )
        #expect(published.isEmpty)
    }

    // MARK: Request status

    @Test func `a worker hears of an approval, with a link to the request and nothing personal in the preview`()
        async throws
    {
        try await run { (product: Product) async throws in
            let published = try await product.happen("request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(told(published) == ["w: Request approved"])
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

    @Test func `a worker hears of a rejection, and why in the inbox only`() async throws {
        try await run { (product: Product) async throws in
            let published = try await product.happen(
                "request.rejected", "{\(Self.request),\"worker\":{\"id\":\"w\"},\"reason\":\"Too many are away\"}")
            #expect(published.map(\.content.body) == ["Open the app to see the details."])
            #expect(
                try await product.inboxBodies("w") == [
                    "Your vacation request for July 1, 2026 to July 14, 2026 was rejected: Too many are away"
                ])
        }
    }

    @Test func `everyone is spoken to in their own language`() async throws {
        try await run { (product: Product) async throws in
            try await product.choose(PersonalSettings(language: Language("es-MX")), user: "w")
            let published = try await product.happen("request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(told(published) == ["w: Solicitud aprobada"])
            #expect(
                try await product.inboxBodies("w") == [
                    "Tu solicitud (vacation) del 1 de julio de 2026 al 14 de julio de 2026 ha sido aprobada."
                ])
        }
    }

    // MARK: Preferences

    @Test func `the master switch and the switch of a type keep the push back, and the inbox has it`() async throws {
        try await run { (product: Product) async throws in
            for (user, settings) in [
                ("w1", PersonalSettings(isOn: false)), ("w2", PersonalSettings(types: ["request-status": false])),
                ("w3", PersonalSettings(types: ["announcements": false])),
            ] {
                try await product.choose(settings, user: user)
                let published = try await product.happen(
                    "request.approved", "{\(Self.request),\"worker\":{\"id\":\"\(user)\"}}")
                #expect(told(published) == (user == "w3" ? ["w3: Request approved"] : []))
                #expect(try await product.inbox(user) == [1, 1])
            }
            #expect(try await product.story("w1") == ["request-approved inbox switched-off"])
            #expect(try await product.story("w2") == ["request-approved inbox type-off"])
        }
    }

    @Test func `in quiet hours nothing is sent until they end`() async throws {
        try await run { (product: Product) async throws in
            try await product.choose(
                PersonalSettings(
                    quietHours: QuietHours(days: Set(Weekday.allCases), start: clock("12:00"), end: clock("15:00"))),
                user: "w")
            let published = try await product.happen("request.approved", "{\(Self.request),\"worker\":{\"id\":\"w\"}}")
            #expect(published.isEmpty)
            product.clock.set(moment("2026-02-26T14:00:00Z"))
            #expect(told(try await product.pass()) == ["w: Request approved"])
        }
    }

    @Test func `quiet hours hold both digests until they end, but not at a time that the person chose`() async throws {
        try await run { (product: Product) async throws in
            let quiet = QuietHours(days: Set(Weekday.allCases), start: clock("06:00"), end: clock("14:00"))
            for user in ["w", "m", "chooser"] {
                try await product.choose(
                    PersonalSettings(quietHours: quiet, digestTime: user == "chooser" ? clock("09:00") : nil),
                    user: user)
            }
            for user in ["m", "chooser"] { try await submit(user == "m" ? 1 : 2, to: product, manager: user) }
            try await record("d1", expires: "2026-03-05", in: product)
            // Nine in Madrid, the rule's own time.
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            #expect(told(try await product.pass()) == ["chooser: Pending requests"])
            product.clock.set(moment("2026-02-27T12:59:59Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-02-27T13:00:00Z"))
            #expect(told(try await product.pass()) == ["m: Pending requests", "w: Documents expire soon"])
            #expect(
                try await product.story("w").sorted() == [
                    "document-expiry digest gathered", "document-expiry digest summed-up",
                    "document-expiry hold quiet-hours", "document-expiry push wanted",
                ])
            #expect(try await product.inboxBodies("m").count == 1)
        }
    }

    // MARK: The manager's day

    @Test func `a manager hears once a day at nine how many requests are pending, and nothing when none is`()
        async throws
    {
        try await run { (product: Product) async throws in
            for number in 1...3 { try await submit(number, to: product) }
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-02-27T07:59:59Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            let summary = try await product.pass()
            #expect(told(summary) == ["m: Pending requests"])
            #expect(summary.first?.content.body == "Requests wait for your decision.")
            #expect(summary.first?.content.data?["count"] == 3)
            #expect(summary.first?.content.deepLink == "monolitehr://requests/pending")
            #expect(
                try await product.inboxBodies("m") == [
                    "3 requests wait for your decision, the first from Ana (vacation)."
                ])
            for _ in 0..<3 {
                product.clock.advance(.seconds(3600))
                #expect(try await product.pass().isEmpty)
            }
            // Two are decided, one is still pending the day after.
            for number in 1...2 {
                _ = try await product.happen(
                    number == 1 ? "request.approved" : "request.rejected",
                    Self.request.replacing("r-1", with: "r-\(number)").wrapped(#","worker":{"id":"w"},"reason":null"#))
            }
            product.clock.set(moment("2026-02-28T08:00:01Z"))
            #expect(try await product.pass().map(\.content.data?["count"]) == [1])
            _ = try await product.happen("request.withdrawn", #"{"request":{"id":"r-3"}}"#)
            product.clock.set(moment("2026-03-01T08:00:01Z"))
            #expect(try await product.pass().isEmpty)
            // Something new begins it again.
            try await submit(4, to: product)
            product.clock.set(moment("2026-03-02T08:00:01Z"))
            #expect(try await product.pass().map(\.content.data?["count"]) == [1])
        }
    }

    @Test func `each manager has a time of their own, where they are`() async throws {
        try await run { (product: Product) async throws in
            try await product.choose(PersonalSettings(digestTime: clock("17:30")), user: "late")
            try await product.choose(PersonalSettings(zone: zone("America/New_York")), user: "far")
            for (number, manager) in ["late", "far", "m"].enumerated() {
                try await submit(number, to: product, manager: manager)
            }
            var heard: [String] = []
            for hour in 0..<24 {
                for told in told(try await product.pass()) { heard.append("\(hour) \(told)") }
                product.clock.advance(.seconds(3600))
            }
            // From noon UTC on: 16:30 UTC, 14:00 UTC (nine in New York) and 08:00 UTC of the next day.
            #expect(heard == ["2 far: Pending requests", "5 late: Pending requests", "20 m: Pending requests"])
        }
    }

    @Test func `who changes the time is told at the new one, once`() async throws {
        try await run { (product: Product) async throws in
            try await product.choose(PersonalSettings(digestTime: clock("18:00")), user: "m")
            try await submit(1, to: product)
            try await product.choose(PersonalSettings(digestTime: clock("20:00")), user: "m")
            product.clock.set(moment("2026-02-26T17:30:00Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-02-26T19:00:00Z"))
            #expect(told(try await product.pass()) == ["m: Pending requests"])
            // Later today, once more: today has had its own.
            try await product.choose(PersonalSettings(digestTime: clock("21:00")), user: "m")
            product.clock.set(moment("2026-02-26T20:30:00Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-02-27T20:00:00Z"))
            #expect(told(try await product.pass()) == ["m: Pending requests"])
        }
    }

    @Test func `a decision that overtakes its request leaves nothing pending`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.happen(
                "request.approved", Self.request.wrapped(#","worker":{"id":"w"}"#), at: "2026-02-26T11:00:05Z")
            try await submit(1, to: product)
            product.clock.set(moment("2026-02-27T08:00:01Z"))
            // The request's event says no time, so it is of when it came: after the decision, and it counts.
            #expect(try await product.pass().count == 1)
            _ = try await product.happen("request.withdrawn", #"{"request":{"id":"r-2"}}"#, at: "2026-02-27T08:00:05Z")
            _ = try await product.happen(
                "request.submitted",
                #"{"request":{"id":"r-2","kind":"x"},"worker":{"id":"w","name":"A"},"manager":{"id":"n"}}"#,
                at: "2026-02-27T08:00:04Z")
            #expect(try await product.story("n") == ["pending-requests drop done"])
        }
    }

    // MARK: Documents

    func record(_ id: String, expires: String, in product: Product) async throws {
        let published = try await product.happen(
            "document.recorded",
            #"{"document":{"id":"\#(id)","kind":"Permit \#(id)","expires_on":"\#(expires)"},"worker":{"id":"w"}}"#)
        #expect(published.isEmpty)
    }

    @Test func `thirty days before documents expire their owner hears how many do, and when the first`() async throws {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-04-10", in: product)
            try await record("d2", expires: "2026-04-08", in: product)
            try await record("d3", expires: "2026-12-31", in: product)
            // The eighth of April is thirty days after the ninth of March.
            product.clock.set(moment("2026-03-09T07:59:59Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-03-09T08:00:00Z"))
            let first = try await product.pass()
            #expect(first.map(\.content.data?["count"]) == [1])
            #expect(first.map(\.content.data?["nearest"]) == ["2026-04-08"])
            product.clock.set(moment("2026-03-10T12:00:00Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-03-11T08:00:00Z"))
            let second = try await product.pass()
            #expect(second.map(\.content.data?["count"]) == [2])
            #expect(second.map(\.content.data?["nearest"]) == ["2026-04-08"])
            #expect(
                try await product.inboxBodies("w") == [
                    "1 document expires soon, the first on April 8, 2026: Permit d2",
                    "2 documents expire soon, the first on April 8, 2026: Permit d2",
                ])
            // Nobody is told of the same again.
            for day in 12...31 {
                product.clock.set(moment("2026-03-\(day)T08:00:00Z"))
                #expect(try await product.pass().isEmpty)
            }
        }
    }

    @Test func `a renewal takes the warning back, and a corrected date moves it`() async throws {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-04-08", in: product)
            try await record("d2", expires: "2026-04-08", in: product)
            _ = try await product.happen("document.renewed", #"{"document":{"id":"d1"}}"#)
            try await record("d2", expires: "2026-04-18", in: product)
            product.clock.set(moment("2026-03-09T09:00:00Z"))
            #expect(try await product.pass().isEmpty)
            product.clock.set(moment("2026-03-19T08:00:00Z"))
            #expect(try await product.pass().map(\.content.data?["count"]) == [1])
        }
    }

    @Test func `a document that has fewer days left is told of the next morning, and one that has expired never`()
        async throws
    {
        try await run { (product: Product) async throws in
            try await record("d1", expires: "2026-03-05", in: product)
            try await record("d2", expires: "2026-02-20", in: product)
            product.clock.set(moment("2026-02-27T08:00:00Z"))
            #expect(try await product.pass().map(\.content.data?["count"]) == [1])
            #expect(try await product.story("w").contains("document-expiry drop too-late"))
        }
    }

    // MARK: Announcements

    @Test func `everyone who works here hears of an announcement, by their own choices`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.happen("staff.listed", #"{"employees":[{"id":"a"},{"id":"b"},{"id":"c"}]}"#)
            _ = try await product.happen("employee.hired", #"{"employee":{"id":"d"}}"#)
            _ = try await product.happen("employee.left", #"{"employee":{"id":"b"}}"#)
            try await product.choose(PersonalSettings(types: ["announcements": false]), user: "c")
            let published = try await product.happen(
                "announcement.published", #"{"announcement":{"id":"x","title":"Party","text":"In the yard"}}"#)
            #expect(told(published) == ["a: Party", "d: Party"])
            #expect(published.map(\.lane) == [.bulk])
            #expect(try await product.inbox("c") == [1, 1])
            #expect(try await product.inbox("b") == [0, 0])
        }
    }

    @Test func `an announcement that comes again is told to those who were told, and to nobody else`() async throws {
        try await run { (product: Product) async throws in
            _ = try await product.happen("staff.listed", #"{"employees":[{"id":"a"},{"id":"b"}]}"#)
            let text = #"{"announcement":{"id":"x","title":"Party","text":"In the yard"}}"#
            let first = try await product.happen("announcement.published", text, id: "x")
            _ = try await product.happen("employee.hired", #"{"employee":{"id":"c"}}"#)
            _ = try await product.happen("employee.left", #"{"employee":{"id":"a"}}"#)
            #expect(try await product.happen("announcement.published", text, id: "x") == first)
        }
    }
}

extension String {
    /// These members and some more, as an object.
    fileprivate func wrapped(_ more: String) -> String { "{\(self)\(more)}" }
}
