@main
struct RulesApp {
    static func main() async throws {}
}
