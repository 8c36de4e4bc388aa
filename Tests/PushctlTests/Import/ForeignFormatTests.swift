import PushProtocol
import Testing

@testable import Pushctl
@testable import RegistryStore

/// The exports of other systems, record by record.
@Suite struct ForeignFormatTests {
    private static let app = AppID(rawValue: "family-portal")!
    private static let token = String(repeating: "Ab", count: 32)

    private func devices(
        _ record: String, _ reader: any RegistrationReader, _ options: ImportOptions = .init()
    ) throws(LineError) -> [ImportedDevice] {
        var found: [ImportedDevice] = []
        for fields in try reader.registrations(in: Array(record.utf8)) {
            found.append(try ImportedDevice(options.completing(fields), app: Self.app, apps: [Self.app]))
        }
        return found
    }

    private func refusal(
        _ record: String, _ reader: any RegistrationReader, _ options: ImportOptions = .init()
    ) -> String {
        let error = #expect(throws: LineError.self) { _ = try devices(record, reader, options) }
        return error?.description ?? ""
    }

    private func options(
        environment: String? = nil, platform: String? = nil, columns: String? = nil, userMember: String? = nil
    ) throws(LineError) -> ImportOptions {
        try ImportOptions(environment: environment, platform: platform, columns: columns, userMember: userMember)
    }

    // MARK: OneSignal

    private static let oneSignalHeader =
        "id,identifier,session_count,language,timezone,game_version,device_os,device_type,device_model,ad_id,tags,"
        + "last_active,playtime,amount_spent,created_at,invalid_identifier,badge_count,external_user_id,"
        + "notification_types,timezone_id"

    private func oneSignal(_ header: String = oneSignalHeader) throws(LineError) -> OneSignalReader {
        try OneSignalReader(header: Array(header.utf8))
    }

    private static func row(
        token: String = token, type: String = "0", seen: String = "1767323045", isInvalid: String = "f",
        user: String = "7", types: String = "1", version: String = "4.2"
    ) -> String {
        "p1,\(token),3,de,3600,\(version),17.4,\(type),\"iPhone15,2\",,\"{\"\"plan\"\":\"\"pro\"\"}\",\(seen),0,0,"
            + "2025-01-01,\(isInvalid),0,\(user),\(types),Europe/Zurich"
    }

    @Test func `an iOS subscription of OneSignal becomes an APNs registration`() throws {
        let device = try #require(
            try devices(Self.row(), try oneSignal(), try options(environment: "production")).first)
        #expect(device.request.kind == .alert && device.request.environment == .production)
        #expect(device.request.user.rawValue == "7" && device.request.token.secret == Self.token.lowercased())
        #expect(device.request.locale == "de" && device.request.timeZone == "Europe/Zurich")
        #expect(device.request.appVersion == "4.2" && device.request.installation == nil)
        #expect(device.registeredAt.map(Timestamp.init)?.milliseconds == 1_767_323_045_000)
    }

    @Test func `an Android subscription of OneSignal has a token or a FID`() throws {
        let reader = try oneSignal()
        let token = try #require(try devices(Self.row(token: "cR:APA91b", type: "1"), reader).first)
        #expect(token.request.kind == .fcmToken && token.request.platform == .android)
        let fid = try #require(
            try devices(Self.row(token: "cR3vRk1BQmaWIcyBsB_g5u", type: "AndroidPush"), reader).first)
        #expect(fid.request.kind == .fid)
    }

    @Test func `a value that a registration cannot have is omitted`() throws {
        let device = try #require(
            try devices(Self.row(type: "1", seen: "0", types: "", version: "1.0 beta"), try oneSignal()).first)
        #expect(device.request.appVersion == nil && device.registeredAt == nil)
    }

    @Test(arguments: [
        (row(isInvalid: "t"), "unsubscribed in OneSignal"), (row(types: "-2"), "unsubscribed in OneSignal"),
        (row(types: "0"), "unsubscribed in OneSignal"), (row(user: ""), "external_user_id is empty"),
        (row(token: "SECRET", type: "5"), "device_type is Chrome"), (row(type: "11"), "device_type is e-mail"),
        (row(token: "SECRET", type: "13"), "device_type is Huawei"), (row(type: "99"), "device_type is unknown"),
        (row(token: ""), "token is missing"), (row(seen: "SECRET"), "last_active is invalid"),
        ("a,b", "the line has 2 fields"),
    ])
    func `a subscription of OneSignal that cannot be notified is refused`(_ row: String, _ reason: String) throws {
        let refusal = refusal(row, try oneSignal(), try options(environment: "production"))
        #expect(refusal.contains(reason), "\(refusal)")
        #expect(!refusal.contains("SECRET"))
    }

    @Test func `an iOS subscription needs an environment`() throws {
        #expect(refusal(Self.row(), try oneSignal()).contains("--environment names one for all lines"))
    }

    @Test(arguments: [("id,SECRET", "lacks the columns"), ("identifier,device_type", "extra_fields"), ("", "lacks")])
    func `a file that is not an export of OneSignal is refused`(_ header: String, _ reason: String) {
        let error = #expect(throws: LineError.self) { _ = try oneSignal(header) }
        #expect(error?.description.contains(reason) == true && error?.description.contains("SECRET") == false)
    }

    // MARK: Firebase

    @Test func `own tables with FCM tokens name their columns`() throws {
        let options = try options(columns: "token=fcm_token,user=uid,platform=os,registered_at=seen")
        let reader = try FirebaseCSVReader(header: Array("uid,fcm_token,os,seen,mail".utf8), columns: options.columns)
        let rows: [(String, RegistrationKind, DevicePlatform?)] = [
            ("7,x:Y,Android,2026-01-02 03:04:05.678901 UTC,a", .fcmToken, .android),
            ("7,x:Y,iPhone,1767323045678,a", .fcmToken, .ios),
            ("7,x:Y,web,2026-01-02T04:04:05.678+01:00,", .fcmWeb, nil),
        ]
        for (row, kind, platform) in rows {
            let device = try #require(try devices(row, reader, options).first)
            #expect(device.request.kind == kind && device.request.platform == platform, "\(row)")
            #expect(device.registeredAt.map(Timestamp.init)?.milliseconds == 1_767_323_045_678, "\(row)")
        }
        #expect(refusal("7,x:Y,Windows,,", reader).contains("platform is invalid"))
        #expect(refusal("7,x:Y,ios,yesterday,", reader).contains("registered_at is invalid"))
        #expect(refusal(",x:Y,ios,,", reader).contains("user is missing"))
    }

    @Test func `without names the columns are those of the fields, and others are ignored`() throws {
        let reader = try FirebaseCSVReader(header: Array("token,mail,user,kind".utf8), columns: [:])
        let device = try #require(try devices("x:Y,a@b.c,7,fid", reader, try options(platform: "ios")).first)
        #expect(device.request.kind == .fid && device.request.platform == .ios)
        for (header, columns) in [("uid,token", [:]), ("SECRET,x", [DeviceField.token: "token"])] {
            let error = #expect(throws: LineError.self) {
                _ = try FirebaseCSVReader(header: Array(header.utf8), columns: columns)
            }
            #expect(error?.description.contains("no column") == true && error?.description.contains("SECRET") == false)
        }
    }

    @Test(arguments: ["token", "token=", "nothing=x", "token=a,token=b", "token=a,user=a"])
    func `a wrong list of columns is refused`(_ columns: String) {
        #expect(throws: LineError.self) { _ = try options(columns: columns) }
    }

    @Test func `the project's own CSV takes names of columns too`() throws {
        let options = try options(environment: "sandbox", columns: "token=t,user=u,platform=p")
        let reader = try DeviceLineReader(header: Array("x,u,t,p".utf8), columns: options.columns)
        let device = try #require(try devices("1,7,\(Self.token),ios", reader, options).first)
        #expect(device.request.environment == .development && device.request.kind == .alert)
    }

    // MARK: gorush

    private let gorush = GorushReader(userMember: "data.user_id")

    @Test func `each token of a gorush notification is a registration`() throws {
        let iOS = """
            {"tokens":["\(Self.token)","ab"],"platform":1,"message":"Hi","topic":"com.example","development":true,\
            "data":{"user_id":7}}
            """
        let devices = try devices(iOS, gorush)
        #expect(devices.map(\.request.token.secret) == [Self.token.lowercased(), "ab"])
        #expect(devices.allSatisfy { $0.request.user.rawValue == "7" && $0.request.environment == .development })
        #expect(devices.allSatisfy { $0.request.kind == .alert && $0.request.topic == nil })
        let android = #"{"to":"x:Y","tokens":[""],"platform":2,"data":{"user_id":"a"}}"#
        #expect(try self.devices(android, gorush).map(\.request.kind) == [.fcmToken])
        let voip = #"{"tokens":["ab"],"platform":1,"production":true,"push_type":"voip","who":"a"}"#
        let call = try self.devices(voip, GorushReader(userMember: "who"))
        #expect(call.map(\.request.kind) == [.voip] && call.first?.request.environment == .production)
    }

    @Test func `a gorush notification to more tokens than a user has is refused`() throws {
        func notification(_ count: Int) -> String {
            let tokens = (0..<count).map { "\"t\($0)\"" }.joined(separator: ",")
            return "{\"tokens\":[\(tokens)],\"platform\":2,\"data\":{\"user_id\":1}}"
        }
        #expect(try devices(notification(GorushReader.maximumTokens), gorush).count == GorushReader.maximumTokens)
        #expect(refusal(notification(GorushReader.maximumTokens + 1), gorush).contains("not those of one user"))
    }

    @Test func `a request of gorush with other members before its list is read as a whole`() throws {
        let request = """
            {"sync":true,"notifications":[{"tokens":["a"],"platform":2,"data":{"user_id":1}},\
            {"tokens":["b"],"platform":2,"data":{"user_id":2}}]}
            """
        #expect(try devices(request, gorush).map(\.request.user.rawValue) == ["1", "2"])
    }

    @Test(arguments: [
        (#"{"tokens":["SECRET"],"platform":3,"data":{"user_id":1}}"#, "platform is 3 (Huawei)"),
        (#"{"tokens":["SECRET"],"platform":"ios","data":{"user_id":1}}"#, "platform is missing or unknown"),
        (#"{"tokens":["SECRET"],"platform":2}"#, "data.user_id is no text and no number"),
        (#"{"tokens":[],"platform":2,"data":{"user_id":1}}"#, "tokens is empty"),
        (#"{"topic":"news","platform":2,"data":{"user_id":1}}"#, "goes to an FCM topic"),
        (#"{"tokens":["ab"],"platform":1,"push_type":"liveactivity","data":{"user_id":1}}"#, "push_type is not"),
        (#"{"tokens":["ab"],"platform":1,"data":{"user_id":1}}"#, "--environment names one"),
        (#"{"tokens":["SECRET token"],"platform":2,"data":{"user_id":1}}"#, "visible ASCII"),
        ("[]", "not a JSON object"),
    ])
    func `a gorush notification without usable tokens is refused`(_ record: String, _ reason: String) {
        let refusal = refusal(record, gorush)
        #expect(refusal.contains(reason), "\(refusal)")
        #expect(!refusal.contains("SECRET"))
    }

    // MARK: AeroGear

    @Test func `an installation of AeroGear belongs to its alias`() throws {
        let spaced = "AB12 cd34-ef56"
        let installation = """
            {"id":"1f","enabled":true,"deviceToken":"\(spaced)","deviceType":"iPhone","operatingSystem":"iOS",\
            "osVersion":"9.0","alias":"pat@example.com","categories":[{"name":"sport"}],"platform":null}
            """
        let device = try #require(
            try devices(installation, AeroGearReader(), try options(environment: "production")).first)
        #expect(device.request.user.rawValue == "pat@example.com" && device.request.token.secret == "ab12cd34ef56")
        #expect(device.request.kind == .alert)
        let android = #"{"deviceToken":"x-Y:z","deviceType":"Pixel 8","alias":"pat","categories":["sport"]}"#
        let other = try #require(try devices(android, AeroGearReader(), try options(platform: "android")).first)
        #expect(other.request.token.secret == "x-Y:z" && other.request.platform == .android)
        #expect(refusal(android, AeroGearReader()).contains("--platform names one for all lines"))
    }

    @Test(arguments: [
        (#"{"deviceToken":"SECRET","operatingSystem":"android","alias":"a","enabled":false}"#, "disabled in AeroGear"),
        (#"{"deviceToken":"SECRET","operatingSystem":"android"}"#, "has no alias"),
        (#"{"deviceToken":"SECRET","operatingSystem":"android","alias":""}"#, "has no alias"),
        (#"{"deviceToken":"SECRET","platform":"web_push","alias":"a"}"#, "not iOS or Android"),
        (#"{"operatingSystem":"android","alias":"a"}"#, "token is missing"), ("SECRET", "not a JSON object"),
    ])
    func `an installation without user or platform is refused`(_ record: String, _ reason: String) {
        let refusal = refusal(record, AeroGearReader())
        #expect(refusal.contains(reason), "\(refusal)")
        #expect(!refusal.contains("SECRET"))
    }

    @Test func `a record that is too long is refused`() throws {
        let long = String(repeating: "a", count: GorushReader.maximumSize + 1)
        #expect(refusal(long, gorush).contains("the maximum"))
        #expect(refusal(String(long.prefix(70_000)), AeroGearReader()).contains("the maximum"))
        #expect(refusal(String(long.prefix(70_000)), try oneSignal()).contains("the maximum"))
    }

    // MARK: Values

    @Test(arguments: [
        ("1767323045", "2026-01-02T03:04:05.000Z"), ("1767323045678", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05.000Z"), ("2026-01-02 03:04:05.6", "2026-01-02T03:04:05.600Z"),
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02 03:04:05+00", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05-05:00", "2026-01-02T08:04:05.000Z"), ("2026-01-02", "2026-01-02T00:00:00.000Z"),
        ("0", nil), ("-1", nil), ("", nil), ("yesterday", nil), ("01/02/2026", nil), ("2026-13-02 03:04:05", nil),
        ("2026-01-02 03:04:05 +02:00", nil), ("99999999999999999", nil), ("2026-01-02 03:04:05.x", nil),
    ])
    func `a time of another system becomes RFC 3339, or nothing`(_ text: String, _ time: String?) {
        #expect(ForeignValue.time(text) == time)
    }

    @Test func `options are part of the identity of an import`() throws {
        let some = [
            try options(), try options(environment: "production"), try options(environment: "sandbox"),
            try options(platform: "ios"), try options(columns: "token=a"), try options(userMember: "a"),
        ]
        #expect(Set(some.map(\.mode)).count == some.count && some[0].mode.isEmpty)
        for wrong in [("here", nil), (nil, "wii")] as [(String?, String?)] {
            #expect(throws: LineError.self) { _ = try options(environment: wrong.0, platform: wrong.1) }
        }
    }
}
