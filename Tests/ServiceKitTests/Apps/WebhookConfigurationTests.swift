import PushProtocol
import ServiceKit
import Testing
import TestSupport

@Suite struct WebhookConfigurationTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `an app may ask for a queue of reports, and for webhooks`() throws {
        try folder.write("crm.secrets", "whsec_x")
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              a:
                reports: { queue: true }
                webhooks:
                  - { name: crm, url: "https://crm.example/x?key=1", secret-file: crm.secrets }
                  - { name: devices, url: "https://10.0.0.1:8443/", secret-file: crm.secrets, events: [dead-device] }
              b: { reports: { queue: false } }
              c:
            """)
        let catalog = try AppCatalog.load(path: path)
        let (a, b) = (AppID(rawValue: "a")!, AppID(rawValue: "b")!)
        #expect(catalog.reportConsumers.upstreams == [a])
        #expect(
            catalog.reportConsumers.webhooks.map(\.queue.name) == [
                "webhook-sender.reports.a.crm", "webhook-sender.reports.a.devices",
            ])
        #expect(catalog.reportConsumers.webhooks.map(\.kinds.count) == [3, 1])
        #expect(catalog[a]?.webhooks.first?.secretFile == "\(folder.path)/crm.secrets")
        let apps = ActiveApps(catalog)
        for kind in ReportKind.allCases { #expect(apps.wants(kind, of: a) && !apps.wants(kind, of: b)) }
    }

    @Test func `a wrong webhook is reported with its place, and its URL is not repeated`() throws {
        try folder.write("crm.secrets", "whsec_x")
        let path = try folder.write(
            "apps.yaml",
            """
            apps:
              a:
                reports: { queue: maybe }
                webhooks:
                  - { name: crm, url: "https://user:hunter2@crm.example/", secret-file: crm.secrets }
                  - { name: CRM, url: "http://crm.example/", secret-file: no.secrets, events: [everything] }
                  - { name: x, url: "https://crm.example/", secret-file: crm.secrets, events: [] }
                  - { name: x, url: "https://crm.example/", secret-file: crm.secrets, secret: y }
              b: { reports: {} }
            """)
        let error = #expect(throws: ConfigurationError.self) { try AppCatalog.load(path: path) }
        let found = error?.problems.map { $0.replacing(folder.path + "/", with: "") }
        #expect(
            found == [
                "apps.yaml:3: apps.a.reports.queue: “maybe” is not true or false",
                "apps.yaml:5: apps.a.webhooks[0].url: the URL is refused: it contains credentials; use the signature",
                "apps.yaml:6: apps.a.webhooks[1].name: a webhook's name is 1–32 characters of a–z, 0–9 and '-', "
                    + "not starting with '-'",
                "apps.yaml:6: apps.a.webhooks[1].url: the URL is refused: http is for tests on this machine only; use https",
                "apps.yaml:6: apps.a.webhooks[1].secret-file: no.secrets is not a file that exists and can be read",
                "apps.yaml:6: apps.a.webhooks[1].events[0]: “everything” is not one of delivery, receipt, dead-device",
                "apps.yaml:7: apps.a.webhooks[2].events: names no event; leave it out for all",
                "apps.yaml:8: apps.a.webhooks[3].secret: unknown key; known keys: name, url, secret-file, events",
                "apps.yaml:8: apps.a.webhooks[3]: the app has another webhook “x”; choose another name",
                "apps.yaml:9: apps.b.reports: “queue” is missing",
            ])
    }
}
