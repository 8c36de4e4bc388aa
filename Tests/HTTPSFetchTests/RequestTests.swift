import Testing
import TestSupport

@testable import HTTPSFetch

/// Runs a scripted server and calls `body` with its URL.
func withServer<R>(
    _ answer: @escaping @Sendable (String) -> ScriptedServer.Answer,
    _ body: (ScriptedServer, String) async throws -> R
) async throws -> R {
    let server = try ScriptedServer(answer)
    defer { server.stop() }
    return try await body(server, "http://127.0.0.1:\(server.port)")
}

@Suite(.timeLimit(.minutes(1))) struct RequestTests {
    private let ok = ScriptedServer.Answer.text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    @Test func `a response has status, headers and body`() async throws {
        let answer = "HTTP/1.1 418 Teapot\r\nX-A:  one \r\nx-a: two\r\nContent-Length: 5\r\n\r\nshort"
        try await withServer({ _ in .text(answer) }) { _, url in
            let response = try await HTTPSFetch().send(FetchRequest(url: url))
            #expect(response.status == 418)
            #expect(response["x-A"] == "one")
            #expect(response.headers.filter { $0.name == "x-a" }.map(\.value) == ["one", "two"])
            #expect(String(decoding: response.body, as: UTF8.self) == "short")
        }
    }

    @Test func `a request is sent unchanged`() async throws {
        try await withServer({ [ok] _ in ok }) { server, url in
            let request = FetchRequest(
                method: "POST", url: "\(url)/token?x=1",
                headers: [
                    ("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Bearer abc"),
                    ("X-Empty", ""),
                ],
                body: Array("grant=a&b=\0c".utf8))
            _ = try await HTTPSFetch().send(request)
            let text = try #require(server.requests.first)
            #expect(text.hasPrefix("POST /token?x=1 HTTP/1.1\r\n"))
            #expect(text.contains("\r\nContent-Type: application/x-www-form-urlencoded\r\n"))
            #expect(text.contains("\r\nAuthorization: Bearer abc\r\n"))
            #expect(text.contains("\r\nX-Empty:\r\n"))
            #expect(!text.contains("Expect:"))
            #expect(text.hasSuffix("\r\n\r\ngrant=a&b=\0c"))
        }
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
    func `every method reaches the server`(method: String) async throws {
        try await withServer({ _ in .text("HTTP/1.1 204 No Content\r\n\r\n") }) { server, url in
            let response = try await HTTPSFetch().send(FetchRequest(method: method, url: url))
            #expect(response.status == 204)
            #expect(server.requests.first?.hasPrefix("\(method) / HTTP/1.1\r\n") == true)
        }
    }

    @Test func `interim responses are skipped`() async throws {
        let answer = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        try await withServer({ _ in .text(answer) }) { _, url in
            let response = try await HTTPSFetch().send(FetchRequest(url: url))
            #expect(response.status == 200)
            #expect(response["link"] == nil)
        }
    }

    @Test func `redirects are not followed`() async throws {
        try await withServer({ [ok] _ in ok }) { elsewhere, target in
            let answer = "HTTP/1.1 302 Found\r\nLocation: \(target)/stolen\r\nContent-Length: 0\r\n\r\n"
            try await withServer({ _ in .text(answer) }) { _, url in
                let response = try await HTTPSFetch().send(FetchRequest(url: url))
                #expect(response.status == 302)
                #expect(elsewhere.requests.isEmpty)
            }
        }
    }

    @Test func `concurrent requests share one client`() async throws {
        try await withServer({ [ok] _ in ok }) { server, url in
            let fetch = HTTPSFetch()
            try await withThrowingTaskGroup(of: Int.self) { group in
                for n in 0..<100 { group.addTask { try await fetch.send(FetchRequest(url: "\(url)/\(n)")).status } }
                for try await status in group { #expect(status == 200) }
            }
            #expect(server.requests.count == 100)
        }
    }

    @Test(arguments: [
        "http://example.com/", "http://10.0.0.1/", "http://127.0.0.1.example.com/", "http://localhost.example.com/",
        "http://[::2]/", "ftp://127.0.0.1/", "file:///etc/passwd", "", "nonsense", "https://",
        "https://user:s3cret@example.com/", "http://user@127.0.0.1/", "https://example.com/\0.evil.example/",
    ])
    func `a disallowed URL is rejected without a connection`(url: String) async {
        let error = await #expect(throws: FetchError.self) { try await HTTPSFetch().send(FetchRequest(url: url)) }
        #expect(error?.code == .invalidRequest)
        #expect(error.map { !"\($0)".contains("s3cret") } == true)
    }

    @Test(arguments: [("X-A", "a\r\nX-B: b"), ("X-A\r\nX-B", "b"), ("", "a"), ("X A", "a"), ("X-A", "a\0b")])
    func `a header with a line break is rejected`(name: String, value: String) async {
        let request = FetchRequest(url: "https://127.0.0.1:1/", headers: [(name, value)])
        let error = await #expect(throws: FetchError.self) { try await HTTPSFetch().send(request) }
        #expect(error?.code == .invalidRequest)
    }
}
