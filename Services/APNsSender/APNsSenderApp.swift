@main
struct APNsSenderApp {
    static func main() async throws {}
}
