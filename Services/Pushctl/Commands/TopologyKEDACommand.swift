import ArgumentParser

extension TopologyCommand {
    /// `pushctl topology keda`
    struct KEDA: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "keda", abstract: "Print KEDA's ScaledObjects of the stages, as YAML for Kubernetes.",
            discussion: "They scale by the lengths and the expected consumption times of the stages' queues, for all "
                + "apps. deploy/kubernetes/README.md describes their use.")
        @Option(help: "The least number of processes of each stage.") var minimum = 2
        @Option(help: "The largest number of processes of each stage. Each one opens database connections.")
        var maximum = 10

        func validate() throws {
            guard minimum > 0, maximum >= minimum else {
                throw ValidationError("--minimum is at least 1, and --maximum at least --minimum")
            }
        }

        func run() throws {
            try OutputOption.write(text: Autoscaling(processes: minimum...maximum).yaml)
        }
    }
}
