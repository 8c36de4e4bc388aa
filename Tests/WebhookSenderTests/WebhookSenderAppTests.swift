import Foundation
import Logging
import ServiceKit
import Testing
import TestSupport

@testable import WebhookSender

@Suite struct WebhookSenderAppTests {
    private let folder: TemporaryFolder
    init() throws { folder = try TemporaryFolder() }

    private func context(_ apps: String) throws -> ServiceContext {
        let settings = try Settings.load(
            keys: .webhookSender,
            environment: [
                "AMQP_URL": "amqp://nobody:x@127.0.0.1:1/none", "HELIOGRAPH_APPS": try folder.write("apps.yaml", apps),
            ])
        return ServiceContext(name: "webhook-sender", settings: settings, logger: .silent, readiness: Readiness())
    }

    @Test func `the app is built without a broker, and is not ready`() async throws {
        _ = try folder.write("crm.secrets", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
        let context = try context(
            """
            apps:
              bare:
              shop:
                webhooks: [{ name: crm, url: "https://crm.example/heliograph", secret-file: crm.secrets }]
            """)
        _ = try await WebhookSenderApp.build(context)
        let names = context.readiness.report.conditions.map(\.name)
        #expect(Set(names) == ["apps", "broker-in", "broker-out", "stage", "topology", "webhooks"])
        #expect(!context.readiness.report.isReady)
    }

    @Test func `the app is built without webhooks`() async throws {
        _ = try await WebhookSenderApp.build(try context("apps:\n  bare:\n"))
    }

    @Test func `an invalid secret names its file`() async throws {
        _ = try folder.write("crm.secrets", "secret")
        let context = try context(
            """
            apps:
              shop:
                webhooks: [{ name: crm, url: "https://crm.example/heliograph", secret-file: crm.secrets }]
            """)
        let error = await #expect(throws: ConfigurationError.self) { _ = try await WebhookSenderApp.build(context) }
        #expect(error?.problems.first?.contains("crm.secrets: a webhook's secret is") == true)
    }
}
