import Testing
import TestSupport

/// The components `keda` and `pgbouncer`.
@Suite(.timeLimit(.minutes(1))) struct ScalingTests {
    private static let keda = "deploy/kubernetes/components/keda/scaled-objects.yaml"
    private static let pooler = "deploy/kubernetes/components/pgbouncer"

    /// If this fails, write the file again: `.build/debug/pushctl topology keda`.
    @Test func `the ScaledObjects are those that pushctl prints`() async throws {
        let process = try ChildProcess(product: "pushctl", ["topology", "keda"])
        #expect(await process.exit() == 0)
        #expect(process.output == (try Repository.text(Self.keda)))
    }

    @Test func `a ScaledObject scales each stage that has no number of replicas, with its own authentication`() throws {
        let objects = try Manifest.all(Self.keda)
        let patch = try Manifest.one("deploy/kubernetes/components/keda/kustomization.yaml")["patches.0"]
        let selector = try #require(patch?["target.labelSelector"]?.text)
        let patched = try #require(selector.firstMatch(of: #/\(([a-z,-]+)\)/#)).1.split(separator: ",").map(String.init)
        #expect(objects.compactMap { $0["spec.scaleTargetRef.name"]?.text } == patched)
        let authentication = try Manifest.one("deploy/kubernetes/components/keda/authentication.yaml")
        for object in objects {
            #expect(object["apiVersion"]?.text == "keda.sh/v1alpha1" && object["kind"]?.text == "ScaledObject")
            #expect(object["metadata.name"]?.text == object["spec.scaleTargetRef.name"]?.text)
            #expect(object["spec.minReplicaCount"]?.text == "2")
            let triggers = object["spec.triggers"]?.items ?? []
            let modes = triggers.compactMap { $0["metadata.mode"]?.text }
            #expect(Set(modes) == ["QueueLength", "ExpectedQueueConsumptionTime"])
            for trigger in triggers {
                #expect(trigger["authenticationRef.name"]?.text == authentication["metadata.name"]?.text)
                for value in trigger["metadata"]?.members ?? [] { #expect(value.value.isString, "\(value.name)") }
                // KEDA accepts a rate or a time only as a value for all processes.
                let isTime = trigger["metadata.mode"]?.text == "ExpectedQueueConsumptionTime"
                #expect(trigger["metricType"]?.text == (isTime ? "Value" : "AverageValue"))
            }
        }
    }

    @Test func `PgBouncer verifies both sides, has no console user and no password, and shares connections`() throws {
        let lines = try Repository.text("\(Self.pooler)/pgbouncer.ini").split(separator: "\n")
        let settings = Dictionary(
            uniqueKeysWithValues: lines.compactMap { line in
                line.wholeMatch(of: #/([a-z_]+) = ?(.*)/#).map { (String($0.1), String($0.2)) }
            })
        #expect(settings["pool_mode"] == "transaction")
        #expect(settings["client_tls_sslmode"] == "require" && settings["server_tls_sslmode"] == "verify-full")
        #expect(settings["auth_type"] == "scram-sha-256")
        #expect(settings["admin_users"] == "" && settings["stats_users"] == "")
        #expect(!lines.contains { $0.contains("password=") })
        let page = try Repository.text("deploy/kubernetes/README.md")
        for file in ["database.ini", "userlist.txt", "tls.crt", "tls.key", "ca.pem"] {
            #expect(lines.contains { $0.hasSuffix("/run/secrets/pgbouncer/\(file)") }, "\(file)")
            #expect(page.contains("`\(file)`"), "\(file)")
        }
    }

    @Test func `with PgBouncer, no service reaches the database itself`() throws {
        let patches = try Manifest.one("\(Self.pooler)/kustomization.yaml")["patches"]?.items ?? []
        let policy = try #require(patches.first { $0["target.kind"]?.text == "NetworkPolicy" })
        let operation = try #require(try Manifest.parse(policy["patch"]?.text ?? "").items.first)
        let path = try #require(operation["path"]?.text).split(separator: "/").joined(separator: ".")
        let base = try Manifests.all("NetworkPolicy").first { $0["metadata.name"]?.text == "database" }
        let direct = Set(try #require(base?[path]).items.compactMap(\.text))
        let remaining = Set(operation["value"]?.items.compactMap(\.text) ?? [])
        let policies = try Manifest.all("\(Self.pooler)/network-policies.yaml")
        for peer in ["spec.podSelector", "spec.ingress.0.from.0.podSelector"] {
            let selector = try #require(policies.compactMap { $0["\(peer).matchExpressions.0.values"] }.first)
            #expect(Set(selector.items.compactMap(\.text)) == direct.subtracting(remaining), "\(peer)")
        }
        #expect(remaining.subtracting(direct) == ["pgbouncer"])
    }
}
