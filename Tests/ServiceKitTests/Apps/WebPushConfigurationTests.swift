import PushProtocol
import ServiceKit
import Testing
import TestSupport

@Suite struct WebPushConfigurationTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func load(_ block: String, using files: AppCatalog.Files = .all) throws -> AppCatalog {
        try AppCatalog.load(
            path: try folder.write("apps.yaml", "apps:\n  a:\n    webpush: \(block)\n  b:\n"), using: files)
    }

    @Test func `an app may have a Web Push key`() throws {
        try folder.write("a.vapid", "x")
        let catalog = try load(
            #"{ key-file: a.vapid, subject: "mailto:push@a.example", home-page: "https://a.example/home" }"#)
        let (a, b) = (AppID(rawValue: "a")!, AppID(rawValue: "b")!)
        #expect(catalog[a]?.webPush?.keyFile == "\(folder.path)/a.vapid")
        #expect(catalog[a]?.webPush?.subject == "mailto:push@a.example")
        let page = String(describing: catalog[a]?.webPush?.homePage)
        #expect(page.contains("https://a.example/home"))
        let apps = ActiveApps(catalog)
        #expect(apps.hasWebPush(a) && !apps.hasWebPush(b))
    }

    @Test func `a process that does not send needs no key file`() throws {
        let block = #"{ key-file: absent, subject: "mailto:push@a.example", home-page: "https://a.example/" }"#
        #expect(try load(block, using: .bearer).apps.first?.webPush != nil)
        #expect(throws: ConfigurationError.self) { try load(block, using: .webPush) }
    }

    @Test(arguments: [
        ("{ subject: x, home-page: \"https://a.example/\" }", "apps.a.webpush: “key-file” is missing"),
        ("{ key-file: a.vapid, home-page: \"https://a.example/\" }", "apps.a.webpush: “subject” is missing"),
        ("{ key-file: a.vapid, subject: x }", "apps.a.webpush: “home-page” is missing"),
        ("{ key-file: a.vapid, subject: x, home-page: a.example }", "“a.example” is not the URL of a page"),
        ("{ key-file: a.vapid, subject: x, home-page: \"https://a.example/\", key: y }", "apps.a.webpush.key"),
    ])
    func `a wrong block is reported with its place`(block: String, problem: String) throws {
        try folder.write("a.vapid", "x")
        let error = #expect(throws: ConfigurationError.self) { try load(block) }
        #expect(error?.problems.contains { $0.contains(problem) } == true, "\(String(describing: error))")
    }
}
