import Foundation
import PushProtocol
import Testing

@testable import Pushctl
@testable import RegistryStore

@Suite struct DeviceLineTests {
    private let portal = AppID(rawValue: "family-portal")!
    private var apps: Set<AppID> { [portal, AppID(rawValue: "hide-and-seek")!] }

    private func device(_ line: String, _ reader: DeviceLineReader = .ndjson, app: AppID? = nil) throws(LineError)
        -> ImportedDevice
    {
        try ImportedDevice(try reader.fields(of: Array(line.utf8)), app: app, apps: apps)
    }

    @Test func `a JSON line and a CSV line have the same fields`() throws {
        let json = """
            {"app":"family-portal","user":"7","kind":"live-activity","environment":"development","token":"AB12",\
            "installation":"i-1","scope":"match","topic":"com.example","locale":"de-CH","time_zone":"Europe/Zurich",\
            "app_version":"4.2","registered_at":"2026-01-02T03:04:05.678Z"}
            """
        let reader = try DeviceLineReader(
            header: Array(
                "\u{feff}app,user,kind,environment,token,installation,scope,topic,locale,time_zone,app_version,registered_at"
                    .utf8))
        let csv = """
            family-portal,"7",live-activity,development,AB12,i-1,match,com.example,de-CH,"Europe/Zurich",4.2,\
            2026-01-02T03:04:05.678Z
            """
        let device = try device(json)
        #expect(try self.device(csv, reader) == device)
        #expect(
            device.request.app == portal && device.request.user.rawValue == "7" && device.request.kind == .liveActivity)
        #expect(
            device.request.provider == .apns && device.request.environment == .development
                && device.request.token.secret == "ab12")
        #expect(
            device.request.installation?.rawValue == "i-1" && device.request.scope == "match"
                && device.request.topic == "com.example")
        #expect(
            device.request.locale == "de-CH" && device.request.timeZone == "Europe/Zurich"
                && device.request.appVersion == "4.2")
        #expect(device.registeredAt.map(Timestamp.init)?.milliseconds == 1_767_323_045_678)
    }

    @Test func `omitted fields get their defaults`() throws {
        let device = try device(
            #"{"user":456,"platform":"android","token":"x:Y","scope":null,"topic":""}"#, app: portal)
        #expect(
            device.request.app == portal && device.request.user.rawValue == "456" && device.request.kind == .fcmToken)
        #expect(device.request.environment == .production && device.request.scope == nil && device.request.topic == nil)
        #expect(device.registeredAt == nil && device.request.platform == .android)
        let other = try self.device(
            #"{"app":"hide-and-seek","user":"a","provider":"apns","token":"ab","environment":"sandbox"}"#, app: portal)
        #expect(
            other.request.app.rawValue == "hide-and-seek" && other.request.kind == .alert
                && other.request.environment == .development)
        // Firebase serves iPhones too.
        let iPhone = #"{"user":"a","platform":"ios","kind":"fid","token":"f"}"#
        let ours = try self.device(iPhone, app: portal)
        #expect(ours.request.provider == .fcm && ours.request.platform == .ios)
        let apples = #"{"user":"a","platform":"ios","environment":"production","token":"ab"}"#
        #expect(try self.device(apples, app: portal).request.platform == nil)
    }

    @Test(arguments: [
        (#"{"app":"nobody","user":"a","kind":"fid","token":"ab"}"#, "app is not in the apps file"),
        (#"{"app":"A B","user":"a","kind":"fid","token":"ab"}"#, "app is invalid"),
        (#"{"kind":"fid","token":"ab"}"#, "user is missing"),
        (#"{"user":"a\u0000","kind":"fid","token":"ab"}"#, "user is missing or invalid"),
        (#"{"user":"a","token":"ab"}"#, "one of kind, provider or platform"),
        (#"{"user":"a","provider":"wns","token":"ab"}"#, "provider is invalid"),
        (#"{"user":"a","platform":"wii","token":"ab"}"#, "platform is invalid"),
        (#"{"user":"a","kind":"toast","token":"ab"}"#, "kind is invalid"),
        (#"{"user":"a","kind":"fid","provider":"apns","token":"ab"}"#, "contradict"),
        (#"{"user":"a","platform":"ios","provider":"fcm","token":"ab"}"#, "contradict"),
        (#"{"user":"a","kind":"alert","token":"ab"}"#, "environment is missing"),
        (#"{"user":"a","kind":"alert","token":"ab","environment":"x"}"#, "environment is missing or"),
        (#"{"user":"a","kind":"alert","token":"SECRET","environment":"production"}"#, "hexadecimal"),
        (#"{"user":"a","kind":"fid","token":"SECRET token"}"#, "visible ASCII"),
        (#"{"user":"a","kind":"fid","token":"f","installation":"a b"}"#, "installation is invalid"),
        (#"{"user":"a","kind":"fid","token":"f","locale":"a b"}"#, "locale is invalid"),
        (#"{"user":"a","kind":"fid","token":"f","registered_at":"then"}"#, "registered_at is invalid"),
        (#"{"user":"a","kind":"fid","token":7}"#, "token is not a string"),
        (#"{"SECRET":"family-portal"}"#, "unknown member"),
        (#"{"app":"#, "not a JSON object"), ("[]", "not a JSON object"), ("\u{1}", "not a JSON object"),
    ]) func `an invalid line is refused without quoting it`(line: String, problem: String) {
        let refusal = #expect(throws: LineError.self) { _ = try device(line, app: portal) }
        #expect(refusal?.description.contains(problem) == true, "\(refusal?.description ?? "")")
        #expect(refusal?.description.contains("SECRET") == false)
    }

    @Test func `a line needs an app, from the line or the command`() {
        let refusal = #expect(throws: LineError.self) { _ = try device(#"{"user":"a","kind":"fid","token":"f"}"#) }
        #expect(refusal?.description.contains("app is missing; --app names one") == true)
    }

    @Test func `a line that is too long is refused without parsing`() {
        let line = #"{"user":""# + String(repeating: "a", count: DeviceLineReader.maximumSize) + #""}"#
        let refusal = #expect(throws: LineError.self) { _ = try device(line) }
        #expect(refusal?.description.contains("at most") == true)
    }

    @Test func `CSV follows RFC 4180`() throws {
        func fields(_ text: String) throws(LineError) -> [String] { try CSVRecord.fields(of: Array(text.utf8)) }
        #expect(try fields("a,b,,d") == ["a", "b", "", "d"])
        #expect(try fields("") == [""])
        #expect(try fields(##""a,b","say ""hi""" "##.trimmingCharacters(in: .whitespaces)) == ["a,b", #"say "hi""#])
        #expect(try fields(#""","""",x"#) == ["", "\"", "x"])
        for broken in [#"a"b"#, #""a"b"#, #""a"#] {
            _ = #expect(throws: LineError.self) { _ = try fields(broken) }
        }
    }

    @Test func `a CSV header needs known, distinct columns`() throws {
        for header in ["user,SECRET", "user,user"] {
            let refusal = #expect(throws: LineError.self) { _ = try DeviceLineReader(header: Array(header.utf8)) }
            #expect(refusal?.description.contains("SECRET") == false)
        }
        let reader = try DeviceLineReader(header: Array("user,token".utf8))
        let refusal = #expect(throws: LineError.self) { _ = try device("a,b,c", reader) }
        #expect(refusal?.description == "the line has 3 fields, the first line has 2")
    }

    @Test func `the progress of an import fits a line`() {
        var state = ImportState(startedAt: Date())
        let progress = ImportProgress(total: 1000, first: state)
        (state.line, state.position, state.taken, state.refused) = (50, 500, 45, 2)
        #expect(
            progress.line(state, after: .seconds(5), width: 10)
                == "[#####.....] 50%  50 lines  10/s  0:05 left  2 refused")
        #expect(progress.plain(state, after: .zero) == "50%  50 lines  2 refused")
        state.superseded = 3
        #expect(
            ImportProgress.summary(state, report: "r") == [
                "50 lines: 45 registrations taken", "3 skipped: the registry has newer data",
                "2 refused: see r for each line and reason",
            ])
    }
}
