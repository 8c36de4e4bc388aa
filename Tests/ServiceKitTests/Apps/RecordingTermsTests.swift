import PushProtocol
import ServiceKit
import Testing

/// The key `recording` of the apps file.
@Suite struct RecordingTermsTests {
    @Test func `recordings have days and a limit`() throws {
        let catalog = try AppCatalog.parse(
            """
            apps:
              a: { recording: { days: 14 } }
              b: { recording: { days: 1, at-most: 500 } }
              c:
            """, path: "apps.yaml")
        let apps = ActiveApps(catalog)
        #expect(
            apps.recordings == [
                AppID(rawValue: "a")!: RecordingTerms(days: 14),
                AppID(rawValue: "b")!: RecordingTerms(days: 1, limit: 500),
            ])
    }

    @Test(arguments: [
        ("{ days: 0 }", "apps.a.recording.days: “0” is not a whole number from 1 to 90"),
        ("{ days: 91 }", "apps.a.recording.days: “91” is not a whole number from 1 to 90"),
        ("{ days: 7, at-most: 0 }", "apps.a.recording.at-most: “0” is not a whole number from 1 to 10000000"),
    ])
    func `a wrong recording is refused`(value: String, problem: String) {
        do {
            _ = try AppCatalog.parse("apps: { a: { recording: \(value) } }", path: "apps.yaml")
            Issue.record("the file is accepted")
        } catch {
            #expect(error.problems == ["apps.yaml:1: \(problem)"])
        }
    }
}
