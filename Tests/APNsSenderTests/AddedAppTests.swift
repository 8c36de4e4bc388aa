import HTTP2
import NIOPosix
import Providers
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import APNsSender

/// Apps that are added to a running sender.
@Suite struct AddedAppTests {
    private let catalogs: AppCatalogs

    init() throws { catalogs = try AppCatalogs() }

    private func gateways(_ catalog: AppCatalog) async throws -> APNsGateways {
        let settings = try Settings.load(keys: APNsSettings.keys, environment: [:])
        return try await APNsGateways(
            apps: catalog, settings: try APNsSettings(settings), eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: .silent)
    }

    private func entry(_ name: String, keyID: String = "ABC123DEFG", key: String = "key.p8") -> String {
        "\(name): { apns: { topic: com.example.\(name), key-id: \(keyID), team-id: DEF123GHIJ, key-file: \(key) } }"
    }

    @Test func `an app with a known key shares its connections, token and file`() async throws {
        var gateways = try await gateways(try catalogs.load(entry("one")))
        let clients = gateways.clients.compactMap { $0.current() }
        let added = try #require(try catalogs.load(entry("two")).apps.first)
        try await gateways.add(added)
        #expect(gateways.clients.allSatisfy { $0.apps.map(\.rawValue) == ["one", "two"] })
        #expect(
            gateways.clients.count == 2
                && gateways.clients.allSatisfy { client in
                    clients.contains { $0 === client.current() }
                })
        #expect(gateways.watchedFiles.map(\.routes.count) == [4])
        #expect(gateways.byRoute.count == 4 && gateways.unusableRoutes.isEmpty)
        #expect(gateways.executors.count == 2)
        for client in clients { await client.shutdown() }
    }

    @Test func `an app with a key of its own has connections of its own, and an unusable key names the routes`()
        async throws
    {
        var gateways = try await gateways(try catalogs.load(entry("one")))
        try catalogs.folder.write("bad.p8", "nonsense")
        for app in try catalogs.load(entry("bad", keyID: "BAD123DEFG", key: "bad.p8")).apps {
            try await gateways.add(app)
        }
        for app in try catalogs.load(entry("two", keyID: "TWO123DEFG", key: "other.p8")).apps {
            try await gateways.add(app)
        }
        #expect(Set(gateways.clients.map { $0.apps.map(\.rawValue) }) == [["one"], ["two"], ["bad"]])
        #expect(Set(gateways.unusableRoutes.keys.map(\.app.rawValue)) == ["bad"])
        #expect(gateways.watchedFiles.count == 3)
        await ProviderClients({ [gateways] in gateways.clients }, provider: .apns).shutdown()
    }

    @Test func `an app without credentials has no route`() async throws {
        var gateways = try await gateways(try catalogs.load(entry("one")))
        try await gateways.add(AppConfiguration(id: AppID(rawValue: "bare")!))
        #expect(gateways.byRoute.count == 2 && gateways.executors.count == 1)
        await ProviderClients({ [gateways] in gateways.clients }, provider: .apns).shutdown()
    }
}
