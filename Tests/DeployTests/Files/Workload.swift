/// A Deployment, StatefulSet or Job of the manifests.
struct Workload: CustomStringConvertible {
    let file: String
    let kind: String
    let manifest: Manifest

    var description: String { "\(file): \(kind) \(name)" }
    var name: String { manifest["metadata.name"]?.text ?? "" }
    var pod: Manifest? { manifest["spec.template.spec"] }
    var containers: [Manifest] { pod?["containers"]?.items ?? [] }

    /// Whether it is a Deployment of one of our executables.
    var isService: Bool {
        guard kind == "Deployment", let image = containers.first?["image"]?.text else { return false }
        return Container.product(image) != nil
    }

    static func all() throws -> [Workload] {
        try Manifests.all().filter { ["Deployment", "StatefulSet", "Job"].contains($0.kind) }
            .map { Workload(file: $0.file, kind: $0.kind, manifest: $0.manifest) }
    }
}

/// All objects in deploy/kubernetes.
enum Manifests {
    static func all() throws -> [(file: String, kind: String, manifest: Manifest)] {
        try Repository.files(below: "deploy/kubernetes", suffix: ".yaml").flatMap { file in
            try Manifest.all(file).map { (file, $0["kind"]?.text ?? "", $0) }
        }
    }

    static func all(_ kind: String) throws -> [Manifest] { try all().filter { $0.kind == kind }.map(\.manifest) }
}
