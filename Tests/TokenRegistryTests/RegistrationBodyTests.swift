import PushProtocol
import Testing

@testable import RegistryStore

@Suite struct RegistrationBodyTests {
    static func read(_ text: String) throws(WireError) -> RegistrationBody { try RegistrationBody(Array(text.utf8)) }

    @Test func `the client's body is decoded`() throws {
        let body = try Self.read(#"{"token":"ABCD","platform":"ios","environment":"development"}"#)
        #expect(body.provider == .apns && body.environment == .development && body.token.secret == "abcd")
        let android = try Self.read(#"{"token":"x:APA91b","platform":"android","environment":"production"}"#)
        #expect(android.provider == .fcm && android.token.secret == "x:APA91b")
    }

    @Test(arguments: [
        (#"{"platform":"ios","environment":"production"}"#, "token is missing"),
        (#"{"token":null,"platform":"ios","environment":"production"}"#, "token is missing"),
        (#"{"token":7,"platform":"ios","environment":"production"}"#, "token is invalid: expected a string"),
        (#"{"token":"xyz","platform":"ios","environment":"production"}"#, "token is invalid: an APNs device token is"),
        (#"{"token":"abc","platform":"ios","environment":"production"}"#, "token is invalid: an APNs device token is"),
        (#"{"token":"a b","platform":"android","environment":"production"}"#, "token is invalid: an FCM"),
        (#"{"token":"abcd","platform":"windows","environment":"production"}"#, "platform is invalid"),
        (#"{"token":"abcd","platform":"ios","environment":"staging"}"#, "environment is invalid"),
        (#"[]"#, "the body is invalid: expected an object"), ("{", "the body is not JSON"),
    ])
    func `a bad body is rejected with the member and the reason`(body: String, message: String) {
        let error = #expect(throws: WireError.self) { try Self.read(body) }
        #expect(error?.description.hasPrefix(message) == true, "\(String(describing: error))")
        #expect(error?.description.contains("xyz") == false)
    }

    @Test func `a masked token cannot be used to send`() {
        #expect(DeviceToken(secret: "abcdef0123456789").masked == "abcd… (16 characters)")
    }
}
