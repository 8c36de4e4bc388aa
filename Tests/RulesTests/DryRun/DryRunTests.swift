import ArgumentParser
import Foundation
import PushProtocol
import Testing

@testable import RuleDryRun
@testable import RuleLanguage
@testable import Rules

/// The dry run: `rules check`, `preview` and `diff`.
@Suite struct DryRunTests {
    static let rules = """
        app: test
        zone: Europe/Berlin
        caps: { hourly: { at-most: 2, within: 1h } }
        events:
          thing.happened: { examples: [{ user: a, name: Pat, room: r }] }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: user }
            say: { body: "{{name}}" }
            policy: { caps: hourly }
        """

    /// Files by name.
    func run(_ arguments: [String], _ files: [String: String], rules: [String: String] = [:]) throws -> Answer {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in rules {
            let file = folder.appending(path: name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        let words = arguments.map { $0.replacing("@", with: folder.path) }
        return try command(words).answerOrComplaint { files[$0].map { Data($0.utf8) } }
    }

    func command(_ words: [String]) throws -> any RuleToolCommand {
        try #require(try RuleTool.parseAsRoot(words) as? any RuleToolCommand)
    }

    func line(_ id: String, at moment: String, user: String = "a") -> String {
        #"{"specversion":"1.0","id":"\#(id)","source":"/up","type":"thing.happened","at":"\#(moment)","data":{"user":"\#(user)","name":"Pat \#(id)","room":"r"}}"#
    }

    @Test func `check lists every error, or reports none`() throws {
        let wrong = Self.rules.replacing("caps: hourly }", with: "cap: hourly }")
        let answer = try run(["check", "@/test.yaml"], [:], rules: ["test.yaml": wrong])
        #expect(answer.code == 1)
        #expect(answer.complaints == ["test.yaml:11: rules.only.policy.cap: unknown key; did you mean “caps”?"])
        let right = try run(["check", "@", Shipped.directory], [:], rules: ["test.yaml": Self.rules])
        #expect(right.code == 0, "\(right)")
        #expect(right.lines.count == 1)
        // Only the file without the comment is named.
        #expect(right.complaints.count == 1 && right.complaints[0].contains("/test.yaml: for completion in editors"))
        #expect(right.json?["mistakes"] == [] && right.json?["hints"]?.array?.count == 1)
        let named = try run(
            ["check", "@/test.yaml"], [:],
            rules: ["test.yaml": "# yaml-language-server: $schema=rule-file.schema.json\n\(Self.rules)"])
        #expect(named.code == 0 && named.complaints == [])
        let mistake = try #require(answer.json?["mistakes"]?.array?.first)
        #expect(mistake["file"] == "test.yaml" && mistake["line"] == 11 && mistake["key"] == "rules.only.policy.cap")
    }

    @Test func `the schema is the one of the repository`() throws {
        let answer = try run(["schema"], [:])
        let schema = try WireCoding.decode(JSONValue.self, from: Array(answer.lines.joined().utf8))
        #expect(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema")
        #expect(schema["properties"]?["rules"] != nil)
    }

    @Test func `a preview continues as long as a notification is held`() throws {
        let later = Self.rules.replacing(
            "policy: { caps: hourly }", with: "policy: { schedule: { at: due, before: 1h } }"
        )
        .replacing("room: r }", with: "room: r, due: \"2026-01-11T12:00:00Z\" }")
        let event =
            #"{"specversion":"1.0","id":"e","source":"/up","type":"thing.happened","at":"2026-01-10T12:00:00Z","#
            + #""data":{"user":"a","name":"Pat","room":"r","due":"2026-02-20T12:00:00Z"}}"#
        let answer = try run(
            ["preview", "@/test.yaml", "--events", "e", "--users", "u"], ["e": event, "u": "{}"],
            rules: ["test.yaml": later])
        #expect(
            answer.lines.filter { !$0.hasPrefix(" ") } == [
                "2026-01-10T12:00:00.000Z  a  e  only  hold until 2026-02-20T11:00:00.000Z (scheduled)",
                "2026-02-20T11:00:00.000Z  a  e  only  push (wanted)",
            ], "\(answer)")
        let decisions = try #require(answer.json?["decisions"]?.array)
        #expect(decisions.count == 2 && decisions[0]["until"] == "2026-02-20T11:00:00.000Z")
        #expect(decisions[1]["content"]?["body"] == "Pat" && decisions[1]["requests"]?.array?.count == 2)
        #expect(decisions[1]["requests"]?.array?.first?["limit"] == 4096)
    }

    @Test func `preview shows each recipient's notifications and reasons`() throws {
        let events = (0..<3).map { line("e\($0)", at: "2026-01-10T12:00:0\($0)Z") }.joined(separator: "\n")
        let people = #"{"people":{"b":{"quiet_hours":{"start":"13:00","end":"15:00"}}}}"#
        let answer = try run(
            ["preview", "@/test.yaml", "--events", "e", "--people", "p"],
            ["e": events + "\n\n" + line("e9", at: "2026-01-10T12:30:00Z", user: "b"), "p": people],
            rules: ["test.yaml": Self.rules])
        #expect(answer.code == 0)
        #expect(
            answer.lines.filter { !$0.hasPrefix(" ") } == [
                "2026-01-10T12:00:00.000Z  a  e0  only  push (wanted)",
                "2026-01-10T12:00:01.000Z  a  e1  only  push (wanted)",
                "2026-01-10T12:00:02.000Z  a  e2  only  inbox (capped)",
                "2026-01-10T12:30:00.000Z  b  e9  only  hold until 2026-01-10T14:00:00.000Z (quiet-hours)",
                "2026-01-10T14:00:00.000Z  b  e9  only  push (wanted)",
            ])
        #expect(answer.lines[1] == #"    {"body":"Pat e0","silent":false}"#)
    }

    @Test func `diff shows recipients with more, fewer, later or changed notifications`() throws {
        let events = (0..<5).map { line("e\($0)", at: "2026-01-10T12:00:0\($0)Z") }.joined(separator: "\n")
        func differ(_ change: (String) -> String) throws -> Answer {
            try run(
                ["diff", "@/old/test.yaml", "@/new/test.yaml", "--events", "e"], ["e": events],
                rules: ["old/test.yaml": Self.rules, "new/test.yaml": change(Self.rules)])
        }
        let same = try differ { $0 + "\n" }
        #expect(same.code == 0 && same.json == ["differences": []])
        #expect(same.lines == ["no difference: every user gets the same pushes at the same time"])
        let more = try differ { $0.replacing("at-most: 2", with: "at-most: 4") }
        #expect(
            more.lines == [
                "more: 2", "  a  e2  only  never → 2026-01-10T12:00:02.000Z",
                "  a  e3  only  never → 2026-01-10T12:00:03.000Z",
            ])
        #expect(more.code == 1)
        #expect(
            more.json?["differences"]?.array?.first == [
                "kind": "more", "app": "test", "user": "a", "event": "e2", "rule": "only", "old_at": .null,
                "new_at": "2026-01-10T12:00:02.000Z",
            ])
        let less = try differ { $0.replacing("at-most: 2", with: "at-most: 1") }
        #expect(less.lines == ["less: 1", "  a  e1  only  2026-01-10T12:00:01.000Z → never"])
        let otherwise = try differ { $0.replacing(#""{{name}}""#, with: #""{{name}}!""#) }
        #expect(otherwise.lines.first == "otherwise: 2")
        let digest = try differ {
            $0.replacing("caps: hourly }", with: "digest: { after: 10m, say: { body: \"{{count}}\" } } }")
                .replacing("say: { body: \"{{name}}\" }", with: "say: {}")
        }
        #expect(digest.lines.first == "more: 1", "\(digest.lines)")
        #expect(digest.lines.contains("less: 2"))
    }

    @Test(arguments: [
        (["check"], "Missing expected argument '<path> ...'"),
        (["preview", "x"], "Missing expected argument '--events <file>'"),
        (["diff", "x", "--events", "e"], "Missing expected argument '<new>'"),
        (["preview", "x", "--events", "e", "--event", "e"], "Unknown option '--event'. Did you mean '--events'?"),
        (["preview", "x", "--events"], "Missing value for '--events <file>'"),
    ]) func `a usage error is explained`(arguments: [String], problem: String) throws {
        let error = try #require(throws: (any Error).self) { try RuleTool.parseAsRoot(arguments) }
        #expect(RuleTool.exitCode(for: error).rawValue == 64)
        #expect(RuleTool.message(for: error).contains(problem), "\(RuleTool.message(for: error))")
    }

    @Test func `an unreadable event is reported with its line`() throws {
        for (text, problem) in [
            ("{}", "e:1: the event has no type"), ("\n[", "e:2:"), (#"{"type":"x","at":"soon"}"#, "“at” is not a time"),
        ] {
            let answer = try run(
                ["preview", "@/test.yaml", "--events", "e"], ["e": text], rules: ["test.yaml": Self.rules])
            #expect(answer.code == 1)
            #expect(answer.complaints.first?.contains(problem) == true, "\(answer)")
        }
    }

    @Test func `serve is not a dry-run command`() {
        for words in [[], ["--help"], ["healthcheck"]] { #expect(!RuleTool.accepts(words)) }
        #expect(RuleTool.accepts(["check", "x"]))
    }

    /// A manager's week in the dry run and in the service, with the same rules.
    @Test func `the dry run and the service send the same digests`() throws {
        var dryRun = DryRun(RuleSets([try Shipped.ruleSet("monolite-hr")]))
        func submit(_ id: String) -> DomainEvent {
            event(
                "request.submitted", app: "monolite-hr", id: id,
                [
                    "request": ["id": .string(id), "kind": "vacation"], "worker": ["id": "w", "name": "Ana"],
                    "manager": ["id": "m"],
                ])
        }
        dryRun.process(submit("1"), at: moment("2026-02-26T12:00:00Z"))
        dryRun.process(submit("2"), at: moment("2026-02-26T13:00:00Z"))
        dryRun.process(
            event("request.withdrawn", app: "monolite-hr", ["request": ["id": "1"]]), at: moment("2026-02-27T12:00:00Z")
        )
        dryRun.advance(to: moment("2026-02-28T12:00:00Z"))
        let pushes = dryRun.predictions.filter { $0.content != nil }
        #expect(pushes.map(\.at) == [moment("2026-02-27T08:00:00Z"), moment("2026-02-28T08:00:00Z")])
        #expect(pushes.map(\.content?.data?["count"]) == [2, 1])
    }

    @Test(arguments: ["check", "preview", "diff"])
    func `each command explains itself, with its exit codes`(command: String) throws {
        for words in [[command, "--help"], [command, "x", "-h"]] {
            let help = try #require(throws: (any Error).self) {
                var command = try RuleTool.parseAsRoot(words)
                try command.run()
            }
            #expect(RuleTool.exitCode(for: help) == .success)
            let text = RuleTool.fullMessage(for: help)
            #expect(text.contains("USAGE: rules \(command) "), "\(text)")
            #expect(text.contains("Exit codes: 0 "))
        }
    }

    /// The decision lines without their details.
    func decisions(_ product: String, _ events: [DomainEvent], at moments: [String]) throws -> [String] {
        var dryRun = DryRun(RuleSets([try Shipped.ruleSet(product)]))
        for (event, at) in zip(events, moments) { dryRun.process(event, at: moment(at)) }
        dryRun.advance(to: moment("2026-03-05T00:00:00Z"))
        return dryRun.predictions.map { "\($0.event) \($0.rule) \($0.user) \($0.decision.readableText)" }
    }

    @Test func `each device has its own presence lease`() throws {
        func session(_ type: String, _ device: String) -> DomainEvent {
            event(type, app: "baolife", id: UUID().uuidString, ["player": ["id": "p", "device": .string(device)]])
        }
        func message(_ id: String) -> DomainEvent {
            event(
                "achievement.unlocked", app: "baolife", id: id,
                ["player": ["id": "p"], "achievement": ["id": "a", "name": "First Job"]])
        }
        let lines = try decisions(
            "baolife",
            [
                session("session.active", "phone"), session("session.active", "tablet"),
                session("session.ended", "phone"), message("looking"), session("session.ended", "tablet"),
                message("away"),
            ], at: (0..<6).map { "2026-02-26T12:00:0\($0)Z" })
        #expect(lines == ["looking achievement p inbox (present)", "away achievement p push (wanted)"])
    }

    @Test func `a done event adds a line for each notification that it cancels`() throws {
        func recorded(_ id: String, _ time: String) -> DomainEvent {
            var event = event(
                "document.recorded", app: "monolite-hr", id: id,
                ["document": ["id": "d", "kind": "Permit", "expires_on": "2026-03-10"], "worker": ["id": "w"]])
            event.time = moment(time).date
            return event
        }
        var renewed = event("document.renewed", app: "monolite-hr", id: "renewed", ["document": ["id": "d"]])
        renewed.time = moment("2026-02-26T11:00:00Z").date
        let lines = try decisions(
            "monolite-hr",
            [recorded("before", "2026-02-26T10:00:00Z"), renewed, recorded("late", "2026-02-26T10:30:00Z")],
            at: ["2026-02-26T12:00:00Z", "2026-02-26T12:01:00Z", "2026-02-26T12:02:00Z"])
        #expect(
            lines == [
                "before document-expiry w digest (gathered)", "before document-expiry w drop (done)",
                "late document-expiry w drop (done)",
            ])
        let after = try decisions(
            "monolite-hr", [recorded("after", "2026-02-26T11:30:00Z"), renewed],
            at: ["2026-02-26T12:00:00Z", "2026-02-26T12:01:00Z"])
        #expect(after.last == "after document-expiry w push (wanted)")
    }

    @Test func `a repeated event is decided once`() throws {
        var dryRun = DryRun(RuleSets([try Shipped.ruleSet("baolife")]))
        let one = event(
            "achievement.unlocked", app: "baolife",
            ["player": ["id": "p"], "achievement": ["id": "a", "name": "First Job"]])
        for second in 0..<2 { dryRun.process(one, at: moment("2026-02-26T12:00:0\(second)Z")) }
        #expect(dryRun.predictions.count == 1)
        #expect(dryRun.refusals.map(\.reason) == ["an event with this source and id came before"])
    }

    static let platforms = """
        app: test
        events:
          thing.happened: { examples: [{ user: a, name: Pat, room: r }] }
          room.opened: { examples: [{ user: a, room: r }] }
        reads:
          - { event: room.opened, user: user, thread: "{{room}}" }
        rules:
          only:
            when: { event: thing.happened }
            to: { users: user }
            say: { body: "{{name}}" }
            how: { badge: unread, thread: "{{room}}" }
        """

    /// The lines of one platform or of all, without the preceding lines.
    func preview(
        _ events: [String], _ options: [String] = [], rules: String = platforms, apps: String? = nil
    ) throws -> [String] {
        var files = ["test.yaml": rules]
        files["folder/apps.yaml"] = apps
        files["folder/test.p8"] = apps.map { _ in "read by the sender alone" }
        let answer = try run(
            ["preview", "@/test.yaml", "--events", "e"] + options, ["e": events.joined(separator: "\n")], rules: files)
        #expect(answer.code == 0, "\(answer)")
        return answer.lines
    }

    @Test func `preview shows each platform's payload with its size`() throws {
        let lines = try preview([line("e0", at: "2026-01-10T12:00:00Z")])
        let id = try #require(lines[3].split(separator: ", ").first { $0.contains("apns-collapse-id: ") })
            .split(separator: " ").last!
        #expect(
            Array(lines.dropFirst(2)) == [
                "    APNs (iOS, macOS, watchOS): 61 of 4096 bytes",
                "        apns-collapse-id: \(id), apns-push-type: alert, apns-topic: BUNDLE-ID, apns-priority: 10",
                #"        {"aps":{"alert":{"body":"Pat e0"},"badge":1,"thread-id":"r"}}"#,
                "    FCM (Android, web, iOS by Firebase): 17 of 4096 bytes",
                #"        {"message":{"token":"REGISTRATION-TOKEN","android":{"notification":{"notification_count":1,"tag":"\#(id)"},"priority":"HIGH"},"apns":{"headers":{"apns-collapse-id":"\#(id)"},"payload":{"aps":{"badge":1,"thread-id":"r"}}},"notification":{"body":"Pat e0"}}}"#,
            ])
    }

    @Test func `a badge has the number of unread items at that time`() throws {
        let opened = line("o", at: "2026-01-10T12:00:02Z").replacing("thing.happened", with: "room.opened")
        let events = [line("e0", at: "2026-01-10T12:00:00Z"), line("e1", at: "2026-01-10T12:00:01Z"), opened]
        let later = [line("e2", at: "2026-01-10T12:00:03Z")]
        let badges = try preview(events + later).filter { $0.contains(#""aps":"#) && !$0.contains("message") }
            .compactMap { $0.firstMatch(of: /"badge":([0-9]+)/).map { String($0.1) } }
        // Two seconds after the room was opened, all devices get a badge correction.
        #expect(badges == ["1", "2", "1", "1"])
    }

    @Test func `a payload that would not be sent is shown with its reason`() throws {
        let large = Self.platforms.replacing(
            "how: { badge", with: "how: { apns: { payload: { a: \(String(repeating: "a", count: 5000)) } }, badge")
        let lines = try preview([line("e0", at: "2026-01-10T12:00:00Z")], rules: large)
        #expect(
            lines.contains(
                "    APNs (iOS, macOS, watchOS): never sent; the sender refuses it as payload-too-large (5068 of 4096 bytes)"
            ), "\(lines)")
        #expect(lines.contains("    FCM (Android, web, iOS by Firebase): 17 of 4096 bytes"))
        let call = Self.platforms
            .replacing(#"say: { body: "{{name}}" }"#, with: #"say: { data: { name: "{{name}}" } }"#)
            .replacing(#"how: { badge: unread, thread: "{{room}}" }"#, with: "how: { as: complication }")
        let calls = try preview([line("e0", at: "2026-01-10T12:00:00Z")], rules: call)
        #expect(calls.contains { $0.hasPrefix("    APNs (iOS, macOS, watchOS), complication tokens only: ") })
        #expect(!calls.contains { $0.contains("FCM") })
    }

    @Test func `with the apps file, preview shows bundle ids and unconfigured apps`() throws {
        let apps = """
            apps:
              test:
                apns: { topic: org.example.test, key-id: ABCDE12345, team-id: FGHIJ67890, key-file: test.p8 }
            """
        let lines = try preview([line("e0", at: "2026-01-10T12:00:00Z")], ["--apps", "@/folder/apps.yaml"], apps: apps)
        #expect(lines.contains { $0.contains("apns-topic: org.example.test") })
        #expect(
            lines.last
                == "    FCM (Android, web, iOS by Firebase): skipped; the app has no credentials for this provider"
        )
        let away = try run(
            ["preview", "@/test.yaml", "--events", "e", "--apps", "@/none"], ["e": ""],
            rules: ["test.yaml": Self.platforms])
        #expect(away.code == 1 && away.complaints.first?.contains("cannot be read") == true, "\(away)")
    }

    @Test func `a broadcast is shown as a broadcast, not as a push to a device`() throws {
        let rules = """
            app: test
            events:
              thing.happened: { examples: [{ user: a, name: dHN0, room: r }] }
            rules:
              channel:
                when: { event: thing.happened }
                to: { channel: "{{name}}", environment: development }
                say: { live-activity: { event: update, content-state: { room: "{{room}}" } } }
                how: { as: live-activity }
              topic:
                when: { event: thing.happened }
                to: { fcm-topic: "room-{{room}}" }
                say: { body: Hi }
            """
        let happened = line("e0", at: "2026-01-10T12:00:00Z").replacing("Pat e0", with: "dHN0")
        let lines = try preview([happened], rules: rules)
        #expect(
            lines.filter { !$0.hasPrefix("    {") } == [
                "2026-01-10T12:00:00.000Z  (channel dHN0 of development)  e0  channel  push (broadcast)",
                "    APNs (iOS, macOS, watchOS), all subscribers of a channel in development: 78 of 5120 bytes",
                "        POST /4/broadcasts/apps/BUNDLE-ID",
                "        apns-channel-id: dHN0, apns-push-type: liveactivity, apns-priority: 10, apns-expiration: 0",
                #"        {"aps":{"content-state":{"room":"r"},"event":"update","timestamp":1768046400}}"#,
                "2026-01-10T12:00:00.000Z  (FCM topic room-r)  e0  topic  push (broadcast)",
                "    FCM (Android, web, iOS by Firebase), all subscribers of a topic: 13 of 4096 bytes",
                lines.last,
            ])
        #expect(lines.last?.hasPrefix(#"        {"message":{"topic":"room-r","#) == true)
        #expect(lines.last?.contains(#""notification":{"body":"Hi"}"#) == true)
    }
}
