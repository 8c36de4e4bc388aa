@main
struct TokenRegistryApp {
    static func main() async throws {}
}
