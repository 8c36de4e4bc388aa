@main
struct PushctlApp {
    static func main() async throws {}
}
