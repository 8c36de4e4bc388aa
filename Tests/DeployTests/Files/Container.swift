import Yams

/// A container of a deployment file: its executable, environment and arguments.
struct Container: CustomStringConvertible {
    /// The file and the container's name.
    let description: String
    /// The executable in its image.
    let product: String
    let environment: [String: String]
    /// The arguments of the executable.
    let arguments: [String]
}

extension Container {
    /// The containers in docker-compose.yml that run our executables, including jobs.
    static func compose() throws -> [Container] {
        let file = try Manifest.one("docker-compose.yml")
        return (file["services"]?.members ?? []).compactMap { name, service in
            guard let image = service["image"]?.text, let product = product(image) else { return nil }
            let environment = (service["environment"]?.members ?? []).map { ($0.name, $0.value.text ?? "") }
            return Container(
                description: "docker-compose.yml: \(name)", product: product,
                environment: Dictionary(uniqueKeysWithValues: environment),
                arguments: (service["command"]?.items ?? []).compactMap(\.text))
        }
    }

    /// The containers of the manifests, with the environment patches of the demonstration.
    static func kubernetes() throws -> [Container] {
        let patches = try Manifest.one("deploy/kubernetes/demo/kustomization.yaml")["patches"]?.items ?? []
        return try Workload.all().flatMap { workload in
            try workload.containers.compactMap { container in
                guard let image = container["image"]?.text, let product = product(image) else { return nil }
                var environment = Container.environment(container["env"]?.items ?? [])
                for patch in patches where patch["target.name"]?.text == workload.name {
                    let operations = try Manifest.parse(patch["patch"]?.text ?? "").items
                    environment.merge(Container.environment(operations.compactMap { $0["value"] })) { $1 }
                }
                return Container(
                    description: "\(workload.file): \(workload.name)", product: product, environment: environment,
                    arguments: (container["args"]?.items ?? []).compactMap(\.text))
            }
        }
    }

    private static func environment(_ entries: [Manifest]) -> [String: String] {
        Dictionary(entries.map { ($0["name"]?.text ?? "", $0["value"]?.text ?? "") }) { $1 }
    }

    /// `heliograph/rules:dev` runs `rules`; the tools image runs `pushctl`; other images, of PgBouncer for example, run none
    /// of our executables.
    static func product(_ image: String) -> String? {
        guard image.hasPrefix("heliograph/"), !image.hasPrefix("heliograph/pgbouncer") else { return nil }
        let name = String(image.dropFirst("heliograph/".count).prefix { $0 != ":" })
        return name == "tools" ? "pushctl" : name
    }
}

extension Manifest {
    static func parse(_ yaml: String) throws -> Manifest {
        guard let node = try Yams.compose(yaml: yaml) else { throw UnexpectedDocumentCount(path: "a patch", count: 0) }
        return Manifest(node: node)
    }
}
