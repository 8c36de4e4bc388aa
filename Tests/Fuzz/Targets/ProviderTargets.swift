import Providers
import PushProtocol
import TestSupport

extension FuzzTarget {
    /// The status, header lines, an empty line, and the body of a response of APNs or FCM.
    static let providerResponse = FuzzTarget("provider-response") {
        let fcm =
            #"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"m","details":["#
            + #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"INVALID_ARGUMENT"},"#
            + #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.ApnsError","statusCode":400,"reason":"BadTopic"},"#
            + #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}]}}"#
        return [
            "410\napns-id: 550e8400-e29b-41d4-a716-446655440000\n\n"
                + #"{"reason":"Unregistered","timestamp":1767225600000}"#,
            "429\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\n\n" + #"{"reason":"TooManyRequests"}"#,
            "403\n\n" + #"{"reason":"ExpiredProviderToken"}"#, "503\nretry-after: 120\n\n" + fcm, "400\n\n" + fcm,
            "200\napns-unique-id: x\n\n" + #"{"name":"projects/p/messages/0:1"}"#, "502\n\n<html>",
        ].map { Array($0.utf8) }
    } read: { input in
        var input = FuzzInput(input)
        let status = Int(input.textLine()) ?? 500
        let fields = input.fields()
        let headers = ResponseHeaders(
            nulSeparated: fields.flatMap { Array($0.name.utf8) + [0] + Array($0.value.utf8) + [0] })
        let response = ProviderResponse(status: status, headers: headers, body: Array(input.rest))
        for address in [nil, .fid, .topic, .channel] as [Push.Address?] {
            let context = ResponseContext(
                target: .sample(address: address), now: .sample, credentialAge: .seconds(status))
            _ = APNsCodec(topic: "com.example.app").consequence(of: response, to: context)
            _ = FCMCodec(project: "demo").consequence(of: response, to: context)
        }
        // Headers in the form in which the client passes them, with any damage.
        let raw = ResponseHeaders(nulSeparated: response.body)
        _ = raw["retry-after"]
        _ = raw.id(named: "apns-id")
    }
}
