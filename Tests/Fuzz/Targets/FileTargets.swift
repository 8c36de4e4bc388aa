@testable import Pushctl
import PushProtocol
@testable import RuleLanguage
import ServiceKit
import TestSupport

// Files that operators write.

extension FuzzTarget {
    static let rules = FuzzTarget("rules") {
        try SeedFiles.all(in: "Services/Rules/RuleSets")
    } read: { input in
        guard let text = String(validating: input, as: UTF8.self) else { return }
        let (ruleSet, reader) = RuleFile.read(text, file: "family-portal.yaml")
        guard let ruleSet, reader.problems.isEmpty else { return }
        _ = RuleSets([ruleSet])
    }

    static let apps = FuzzTarget("apps") {
        try [SeedFiles.bytes(of: "deploy/local/demo/apps.yaml")]
    } read: { input in
        guard let text = String(validating: input, as: UTF8.self) else { return }
        _ = try AppCatalog.parse(text, path: "apps.yaml", using: [])
    }

    /// The lines of an import. The first is the header of CSV, or the first object of NDJSON.
    static let deviceLines = FuzzTarget("device-lines") {
        let token = RequestVector.t1
        return [
            "app,user,kind,environment,token,registered_at\ndemo,u1,alert,production,\(token),2026-01-01T00:00:00Z\n"
                + "demo,\"u\"\"2\",alert,production,\(token),\n",
            #"{"user":7,"kind":"alert","environment":"production","token":"\#(token)","time_zone":"Europe/Berlin"}"#,
            #"{"user":"u","provider":"fcm","token":"d:APA91b","platform":"android","locale":"de","app_version":"1"}"#,
        ].map { Array($0.utf8) }
    } read: { input in
        var lines = FuzzInput(input)
        let isObject = lines.rest.first == UInt8(ascii: "{")
        let reader = isObject ? DeviceLineReader.ndjson : try DeviceLineReader(header: lines.line())
        let demo = AppID(rawValue: "demo")
        while !lines.rest.isEmpty {
            guard let fields = try? reader.fields(of: lines.line()) else { continue }
            _ = try? ImportedDevice(fields, app: demo, apps: Set([demo].compactMap(\.self)))
        }
    }
}
