@main
struct FCMSenderApp {
    static func main() async throws {}
}
