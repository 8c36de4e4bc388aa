import Foundation
import ServiceKit
import Testing

@testable import Pushctl

/// The network policies of the cluster.
@Suite struct KubernetesNetworkTests {
    private let policies: [(name: String, policy: Manifest)]

    init() throws {
        policies = try Manifests.all("NetworkPolicy").map { ($0["metadata.name"]?.text ?? "", $0) }
    }

    private func rules(_ direction: String) -> [(policy: String, rule: Manifest)] {
        policies.flatMap { name, policy in (policy["spec.\(direction)"]?.items ?? []).map { (name, $0) } }
    }

    private func ports(_ rule: Manifest) -> Set<String> {
        Set((rule["ports"]?.items ?? []).compactMap { $0["port"]?.text })
    }

    @Test func `every allowed connection names its peer`() {
        #expect(rules("egress").count >= 9 && rules("ingress").count >= 6)
        for (name, rule) in rules("egress") { #expect(rule["to"]?.items.isEmpty == false, "\(name)") }
        for (name, rule) in rules("ingress") { #expect(rule["from"]?.items.isEmpty == false, "\(name)") }
    }

    @Test func `only namespaces with a specific label are allowed in`() {
        for (name, rule) in rules("ingress") {
            for peer in rule["from"]?.items ?? [] {
                guard let selector = peer.members.first(where: { $0.name == "namespaceSelector" })?.value else {
                    continue
                }
                #expect(selector["matchLabels"]?.members.isEmpty == false, "\(name)")
            }
        }
    }

    /// Addresses of the cluster's API server and of the cloud metadata service, which issues credentials.
    @Test func `pods with internet access cannot reach internal addresses`() throws {
        var found = 0
        for (name, rule) in rules("egress") {
            for peer in rule["to"]?.items ?? [] {
                guard let network = peer["ipBlock.cidr"]?.text, network.hasSuffix("/0") else { continue }
                found += 1
                let except = Set((peer["ipBlock.except"]?.items ?? []).compactMap(\.text))
                let inside: Set =
                    network == "::/0"
                    ? ["fc00::/7", "fe80::/10"]
                    : ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"]
                #expect(except.isSuperset(of: inside), "\(name): \(network)")
                #expect(!ports(rule).isEmpty, "\(name)")
            }
        }
        #expect(found == 12)
    }

    @Test func `broker and database are reachable on their ports from inside only`() throws {
        for (name, allowed) in [("broker", ["5671", "5672"]), ("database", ["5432"])] {
            let found = rules("egress").filter { $0.policy == name }
            #expect(found.count == 1)
            let rule = try #require(found.first?.rule)
            #expect(ports(rule) == Set(allowed))
            #expect(rule["to"]?.items.contains { $0["ipBlock.cidr"]?.text?.hasSuffix("/0") == true } == false)
        }
    }

    @Test func `every pod annotated for scraping lets Prometheus in on its port`() throws {
        var found: Set<String> = []
        for workload in try Workload.all() {
            let template = workload.manifest["spec.template.metadata"]
            let annotations = template?["annotations"]?.members ?? []
            guard let port = annotations.first(where: { $0.name == "prometheus.io/port" })?.value.text else { continue }
            found.insert(workload.name)
            let labels = (template?["labels"]?.members ?? []).map { "\($0.name)=\($0.value.text ?? "")" }
            let lets = policies.contains { _, policy in
                let wanted = (policy["spec.podSelector.matchLabels"]?.members ?? [])
                    .map { "\($0.name)=\($0.value.text ?? "")" }
                guard !wanted.isEmpty, Set(wanted).isSubset(of: labels) else { return false }
                return (policy["spec.ingress"]?.items ?? []).contains { rule in
                    ports(rule).contains(port)
                        && rule["from"]?.items.contains {
                            $0["namespaceSelector.matchLabels"]?.members.first?.value.text == "monitoring"
                        } == true
                }
            }
            #expect(lets, "\(workload): \(port)")
            let declared = workload.containers.flatMap { $0["ports"]?.items ?? [] }.compactMap {
                $0["containerPort"]?.text
            }
            #expect(declared.contains(port), "\(workload)")
        }
        #expect(found.isSuperset(of: ["rules", "fcm-sender", "provider-simulator", "rabbitmq"]))
    }

    @Test func `a pushctl pod reaches broker, database, operator API and provider management`() throws {
        let mine = policies.filter { _, policy in
            policy["spec.podSelector.matchLabels"]?.members.contains { $0.value.text == "pushctl" } == true
                || policy["spec.podSelector.matchExpressions"]?.items.contains { expression in
                    expression["values"]?.items.contains { $0.text == "pushctl" } == true
                } == true
        }
        let reached = Set(mine.flatMap { ($0.policy["spec.egress"]?.items ?? []).flatMap(ports) })
        let management = [ConfigurationKey.apnsChannelsURL, .apnsChannelsSandboxURL].compactMap {
            URL(string: $0.defaultValue ?? "")?.port.map(String.init)
        }
        #expect(management.count == 2)
        #expect(reached == Set(["5671", "5672", "5432", "8080", "443"] + management))
        let inside = rules("ingress").filter { $0.policy == "operator-api" }
        #expect(inside.count == 1 && ports(inside[0].rule) == ["8080"])
    }
}
