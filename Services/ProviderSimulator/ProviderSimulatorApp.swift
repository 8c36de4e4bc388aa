@main
struct ProviderSimulatorApp {
    static func main() async throws {}
}
