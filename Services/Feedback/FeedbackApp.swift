@main
struct FeedbackApp {
    static func main() async throws {}
}
