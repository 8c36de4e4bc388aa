import Foundation
import HTTPTypes
import PushProtocol
import Testing
import TestSupport

@testable import Console

@Suite(.timeLimit(.minutes(1))) struct PageTests {
    private static let explanation = """
        {"events": [{"app": "portal", "source": "/chat", "id": "e-1", "type": "chat.written",
          "arrived_at": "2026-03-31T09:00:00Z", "rule_set": "x", "crowds": [], "revocations": [], "clears": [],
          "stories": [{"notification": "n", "user": "a<b>", "rule": "chat",
            "decisions": [{"at": "2026-03-31T09:00:00.250Z", "answer": "push", "reason": "wanted", "until": null}],
            "outcomes": [{"at": "2026-03-31T09:00:01.500Z", "origin": "apns", "device": "d-1",
              "disposition": "rejected", "reason": "BadTopic"}],
            "inbox": null, "waits_until": null, "receipts": []}], "next": null}],
         "reasons": {"wanted": "Nothing speaks against it."}}
        """

    private static func api(_ line: String) -> (Int, String) {
        switch line {
        case "GET /v1/operator/events/e-1?app=portal": (200, explanation)
        case "GET /v1/operator/events/lost?app=portal": (404, #"{"detail": "no decision about such an event"}"#)
        case let line where line.hasPrefix("POST /v1/operator/revocations"): (202, #"{"id": "r"}"#)
        case let line where line.hasPrefix("POST /v1/operator/devices/d-1/deactivate?app=portal"):
            (200, #"{"deactivated": true}"#)
        case let line where line.hasPrefix("GET /v1/operator/notifications"):
            (200, #"{"notifications": [], "waiting": [], "reasons": {}}"#)
        case let line where line.hasPrefix("GET /v1/operator/devices"):
            (200, #"{"devices": [{"device": "d-1", "provider": "apns", "kind": "alert", "state": "active"}]}"#)
        case let line where line.hasPrefix("GET /v1/operator/preferences"): (404, #"{"detail": "no such app"}"#)
        case let line where line.hasPrefix("GET /v1/operator/counts"):
            (
                200,
                """
                {"counted_at": "2026-03-31T09:00:00Z", "counts": [
                 {"app": "portal", "rule": "a", "sent": 4, "opened": 1}, {"app": "portal", "rule": "b", "sent": 9},
                 {"app": "portal", "rule": "a", "sent": 6, "opened": 4}]}
                """
            )
        case "GET /health/ready":
            (
                503,
                #"{"ready": false, "draining": false, "conditions": [{"name": "database", "holds": false, "reason": "away"}]}"#
            )
        case "GET /metrics":
            (200, "heliograph_queue_age_seconds{queue=\"q\"} 3\nheliograph_route_open{app=\"a\",environment=\"e\"} 0\n")
        default: (500, "")
        }
    }

    @Test func `an event's page tells each step with its time since the arrival`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/event?app=portal&id=e-1", as: console.session(.support))
            #expect(answer.status == 200)
            #expect(answer.text.contains("a&lt;b&gt;") && !answer.text.contains("a<b>"))
            #expect(answer.text.contains("<b>+250 ms</b> decided: <span class=\"word good\">push</span>"))
            #expect(answer.text.contains("<b>+1.5 s</b> apns, device d-1: <span class=\"word bad\">rejected</span>"))
            #expect(answer.text.contains("Nothing speaks against it.") && answer.text.contains("BadTopic"))
            // Support may not revoke.
            #expect(!answer.text.contains("/event/revoke") && answer.text.contains("/event/link"))
            #expect(console.server.requests.allSatisfy { $0.contains("Authorization: Bearer key-of-rules") })
        }
    }

    @Test func `an unknown event has the service's sentence`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/event?app=portal&id=lost", as: console.session(.support))
            #expect(answer.status == 404 && answer.text.contains("no decision about such an event"))
        }
    }

    @Test func `a person's page shows what is there when one answer fails`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/person?app=portal&user=ann", as: console.session(.operate))
            #expect(answer.status == 200)
            #expect(answer.text.contains("Deactivate") && answer.text.contains("rules: no such app"))
            #expect(answer.text.contains("Nothing waits for this person."))
            let support = try await console.get("/person?app=portal&user=ann", as: console.session(.support))
            #expect(!support.text.contains("Deactivate"))
        }
    }

    @Test func `counts of a rule's versions are added, most sent first`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/rules?window=week", as: console.session(.look))
            let text = answer.text
            let (a, b) = (try #require(text.range(of: "<td>a</td>")), try #require(text.range(of: "<td>b</td>")))
            #expect(a.lowerBound < b.lowerBound)
            #expect(text.contains("<td>a</td><td>10</td>") && text.contains("value=\"50\""))
        }
    }

    @Test func `the live page tells why a service is not ready, and which route is paused`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/live?refresh=5", as: console.session(.look))
            #expect(answer.text.contains("not ready") && answer.text.contains("database: away"))
            #expect(
                answer.text.contains("paused") && answer.text.contains("<td>q</td>") && answer.text.contains("3.0 s"))
            #expect(answer.text.contains("http-equiv=\"refresh\" content=\"5\""))
        }
    }

    @Test func `a service that is away gives a page with the next step`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            console.server.stop()
            let answer = try await console.get("/event?app=portal&id=e-1", as: console.session(.support))
            #expect(answer.status == 502 && answer.text.contains("rules does not answer"))
            let live = try await console.get("/live", as: console.session(.look))
            #expect(live.status == 200 && live.text.contains("away"))
        }
    }

    @Test(arguments: [
        ("/event?app=portal&id=e-1", Role.look, "support"), ("/person?app=portal&user=a", .look, "support"),
        ("/audit", .support, "operate"),
    ])
    func `a page needs its role`(path: String, role: Role, needed: String) async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get(path, as: console.session(role))
            #expect(answer.status == 403 && answer.text.contains("role “\(needed)”"))
            #expect(console.server.requests.isEmpty)
        }
    }

    @Test(arguments: ["/", "/event?app=portal&id=e-1", "/person", "/rules", "/live", "/audit"])
    func `without a session each page leads to the sign-in and back`(path: String) async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get(path)
            #expect(answer.status == 303)
            #expect(answer.headers[.location] == "/sign-in?target=\(FormCoding.encoded(path))")
            #expect(console.server.requests.isEmpty)
        }
    }

    @Test func `a request for another host reaches no page`() async throws {
        let address = try #require(ConsoleAddress("https://console.example"))
        try await ConsoleHTTP.with(address: address, api: Self.api) { console in
            let answer = try await console.get("/rules", as: console.session(.operate))
            #expect(answer.status == 421 && answer.text.contains("https://console.example"))
        }
    }

    @Test func `a page may load the console's style sheet only`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.get("/", as: console.session(.support))
            #expect(answer.headers[.contentSecurityPolicy]?.hasPrefix("default-src 'none'; style-src 'self'") == true)
            #expect(answer.headers[.cacheControl] == "no-store")
            #expect(!answer.text.contains("<script") && !answer.text.contains("style="))
            #expect(try await console.get("/console.css").status == 200)
        }
    }

    @Test func `a revocation is recorded before and after, with the person's name and reason`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let fields = ["app": "portal", "id": "e-1", "reason": "wrong text"]
            let answer = try await console.post("/event/revoke", fields, as: console.session(.operate))
            #expect(answer.status == 303 && answer.headers[.location] == "/event?app=portal&id=e-1")
            let request = try #require(console.server.requests.last)
            #expect(request.hasSuffix(#"{"app":"portal","event":"e-1","reason":"wrong text (Kim)"}"#))
            let entries = try await console.entries
            #expect(entries.map(\.result) == ["done", "requested"])
            #expect(entries.allSatisfy { $0.person == "Kim" && $0.subject == "e-1" && $0.action == .revoked })
        }
    }

    @Test func `a failed action is recorded with its cause`() async throws {
        try await ConsoleHTTP.with(api: { _ in (403, #"{"detail": "the key may not"}"#) }) { console in
            let fields = ["app": "portal", "user": "ann", "device": "d-1"]
            let answer = try await console.post("/device/deactivate", fields, as: console.session(.operate))
            #expect(answer.status == 502 && answer.text.contains("refuses the console&#39;s API key"))
            #expect(try await console.entries.first?.result.hasPrefix("failed: token-registry refuses") == true)
        }
    }

    @Test func `an action needs the form's token and the role`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let fields = ["app": "portal", "id": "e-1", "reason": "x"]
            var (foreign, long) = (fields, fields)
            foreign["form_token"] = console.frame.keeper.formToken(of: console.session(.operate))
            long["reason"] = String(repeating: "x", count: 20_000)
            let answers = [
                try await console.post("/event/revoke", foreign, as: console.session(.operate)),
                try await console.post("/event/revoke", fields, as: console.session(.support)),
                try await console.post("/event/revoke", fields),
                try await console.post("/event/revoke", long, as: console.session(.operate)),
            ]
            #expect(answers.map(\.status) == [403, 403, 303, 413])
            let entries = try await console.entries
            #expect(console.server.requests.isEmpty && entries.isEmpty)
        }
    }

    @Test func `a support link shows the event without users and devices, and nothing else`() async throws {
        try await ConsoleHTTP.with(api: Self.api) { console in
            let answer = try await console.post(
                "/event/link", ["app": "portal", "id": "e-1"], as: console.session(.support))
            let path = try #require(answer.text.firstMatch(of: /href="http:\/\/localhost(\/shared\/[^"]+)"/)?.1)
            let shared = try await console.get(String(path))
            #expect(shared.status == 200 && shared.text.contains("a device: <span class=\"word bad\">rejected</span>"))
            #expect(
                !shared.text.contains("a&lt;b&gt;") && !shared.text.contains("d-1") && !shared.text.contains("<form"))
            #expect(try await console.get(String(path) + "x").status == 404)
            #expect(try await console.entries.map(\.action) == [.madeSupportLink, .madeSupportLink])
        }
    }
}
