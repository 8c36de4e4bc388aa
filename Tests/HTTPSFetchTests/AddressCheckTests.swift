import Synchronization
import Testing
import TestSupport

@testable import HTTPSFetch

/// A client with an address check connects to no other address, whatever the host's name says.
@Suite(.timeLimit(.minutes(1))) struct AddressCheckTests {
    private let ok = ScriptedServer.Answer.text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")

    @Test func `a refused address gets no connection`() async throws {
        try await withServer({ [ok] _ in ok }) { server, url in
            let seen = Mutex<[[UInt8]]>([])
            let fetch = HTTPSFetch(mayConnect: { address in
                seen.withLock { $0.append(address) }
                return false
            })
            let error = await #expect(throws: FetchError.self) { try await fetch.send(FetchRequest(url: url)) }
            #expect(error?.code == .addressRefused && error?.isRetriable == false)
            #expect(seen.withLock { $0 } == [[127, 0, 0, 1]])
            #expect(server.requests.isEmpty)
        }
    }

    /// The addresses of a name may change between a check and the connect. The check is at the connect.
    @Test func `a name is checked by its addresses at each connect`() async throws {
        try await withServer({ [ok] _ in ok }) { server, url in
            let isAllowed = Mutex(true)
            let seen = Mutex<Set<[UInt8]>>([])
            let fetch = HTTPSFetch(mayConnect: { address in
                seen.withLock { _ = $0.insert(address) }
                return isAllowed.withLock { $0 }
            })
            let name = url.replacing("127.0.0.1", with: "localhost")
            let response = try await fetch.send(FetchRequest(url: name))
            #expect(response.status == 200)
            isAllowed.withLock { $0 = false }
            let error = await #expect(throws: FetchError.self) { try await fetch.send(FetchRequest(url: name)) }
            #expect(error?.code == .addressRefused)
            #expect(server.requests.count == 1)
            #expect(seen.withLock { $0 }.contains([127, 0, 0, 1]))
        }
    }

    @Test func `an allowed address is used when another one of the name is refused`() async throws {
        try await withServer({ [ok] _ in ok }) { _, url in
            let fetch = HTTPSFetch(mayConnect: { $0.count == 4 })
            let name = url.replacing("127.0.0.1", with: "localhost")
            let response = try await fetch.send(FetchRequest(url: name))
            #expect(response.status == 200)
        }
    }

    @Test func `without a kept body, a response of any size has its status`() async throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 100_000)
        try await withServer({ _ in .text(text) }) { _, url in
            let response = try await HTTPSFetch(maximumResponseSize: 1000, keepsBody: false)
                .send(FetchRequest(url: url))
            #expect(response.status == 200 && response.body.isEmpty)
        }
    }
}
