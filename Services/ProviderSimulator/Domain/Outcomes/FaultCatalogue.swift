import PushProtocol

/// Every fault that can be scripted, in the form that `POST /outcomes` accepts.
enum FaultCatalogue {
    /// The faults of a provider, each with its name and, if given, its share of the requests.
    static func outcomes(of provider: ProviderKind, share: Double?) -> [JSONValue] {
        faults(of: provider).map { fault in
            var members = fault
            members["provider"] = .string(provider.rawValue)
            if let share { members["share"] = .double(share) }
            return .object(members)
        }
    }

    private static func faults(of provider: ProviderKind) -> [[String: JSONValue]] {
        switch provider {
        case .apns: apns + wire(limit: 1000)
        case .fcm: fcm + wire(limit: 100)
        case .webpush: webPush + wire(limit: 100)
        case .oauth: oauth
        }
    }

    private static var apns: [[String: JSONValue]] {
        var faults: [[String: JSONValue]] = APNsReason.allCases.map { ["reason": .string($0.rawValue)] }
        faults += [
            ["name": "410 without timestamp", "status": 410, "reason": "Unregistered", "timestamp": .null],
            [
                "name": "410 of last year", "status": 410, "reason": "Unregistered",
                "timestamp": ["ago_ms": 31_536_000_000],
            ],
            ["name": "403 BadEnvironmentKeyInToken", "status": 403, "reason": "BadEnvironmentKeyInToken"],
            ["name": "400 of the future", "status": 400, "reason": "FutureReason"],
            ["name": "400 without body", "status": 400, "body": ""],
            ["name": "200 without id", "status": 200, "omit_id": true],
        ]
        return faults
    }

    private static var fcm: [[String: JSONValue]] {
        var faults: [[String: JSONValue]] = FCMErrorCode.allCases.map { ["error_code": .string($0.rawValue)] }
        faults += [
            ["name": "400 token", "error_code": "INVALID_ARGUMENT", "field": "message.token"],
            ["name": "400 fid", "error_code": "INVALID_ARGUMENT", "field": "message.fid"],
            ["name": "400 payload", "status": 400, "field": "message.data[0].value"],
            [
                "name": "400 gone at Apple", "error_code": "INVALID_ARGUMENT",
                "apns_error": ["status": 410, "reason": "Unregistered"],
            ],
            [
                "name": "401 Apple's key", "error_code": "THIRD_PARTY_AUTH_ERROR",
                "apns_error": ["status": 403, "reason": "InvalidProviderToken"],
            ],
            ["name": "401 bare", "status": 401], ["name": "403 bare", "status": 403],
            ["name": "404 bare", "status": 404], ["name": "400 bare", "status": 400],
            ["name": "200 truncated", "status": 200, "body": #"{"name":"projects/"#],
        ]
        return faults
    }

    private static var webPush: [[String: JSONValue]] {
        var faults: [[String: JSONValue]] = WebPushReason.allCases.map { ["reason": .string($0.rawValue)] }
        faults += [301, 307, 400, 401, 403, 404, 406, 408, 410, 413, 425, 500].map { status in
            ["name": .string("\(status) bare"), "status": .int(status)]
        }
        faults.append([
            "name": "401 Mozilla", "status": 401, "body": #"{"code":401,"errno":109,"error":"Unauthorized"}"#,
        ])
        return faults
    }

    /// Faults that any HTTP/2 server can cause.
    private static func wire(limit: Int64) -> [[String: JSONValue]] {
        var faults: [[String: JSONValue]] = [
            ["name": "429 seconds", "status": 429, "retry_after": 1],
            ["name": "503 seconds", "status": 503, "retry_after": 1],
            ["name": "503 date", "status": 503, "retry_after": ["date_in": 2]],
            ["name": "503 empty", "status": 503, "body": ""],
            [
                "name": "502 html", "status": 502, "content_type": "text/html",
                "body": "<html><body><h1>502 Bad Gateway</h1></body></html>",
            ],
            ["name": "late", "status": 200, "delay_ms": ["p50": 50, "p99": 1000]],
            ["name": "late body", "status": 200, "body_delay_ms": 200], ["name": "1 stream", "max_streams": 1],
            ["name": .string("\(limit) streams"), "max_streams": .int(limit)],
        ]
        for code in [0, 1, 2, 5, 7, 8, 11] as [Int64] { faults.append(["reset": .int(code)]) }
        faults.append(["reset": 2, "after": "headers"])
        faults.append(["reset": 2, "accepted": true, "name": "reset 2 accepted"])
        for transportFault in ["drop", "close", "silence", "stall"] {
            faults.append([transportFault: .bool(true)])
            faults.append([
                transportFault: .bool(true), "accepted": true, "name": .string("\(transportFault) accepted"),
            ])
            faults.append([transportFault: .bool(true), "after": .string("headers")])
        }
        faults.append(["drop": true, "after": "answer"])
        faults.append(["stall": true, "after": "answer"])
        for last in ["before", "included", "graceful"] {
            for (kind, data) in [("json", ("reason", "Shutdown")), ("text", ("text", "session_timed_out"))] {
                let goAway: [String: JSONValue] = ["last_stream": .string(last), data.0: .string(data.1)]
                faults.append(["name": .string("goaway \(last) \(kind)"), "goaway": .object(goAway)])
            }
            faults.append([
                "name": .string("goaway \(last) bare"), "goaway": ["last_stream": .string(last), "code": 2],
            ])
        }
        return faults
    }

    private static var oauth: [[String: JSONValue]] {
        [
            ["status": 500], ["status": 503, "reason": "temporarily_unavailable", "retry_after": 1],
            ["status": 429, "reason": "temporarily_unavailable", "retry_after": ["date_in": 2]],
            ["status": 400, "reason": "invalid_grant"],
            ["name": "502 html", "status": 502, "content_type": "text/html", "body": "<html></html>"],
            ["name": "200 truncated", "status": 200, "body": #"{"access_token":"#],
            ["name": "short-lived", "status": 200, "expires_in": 1],
            ["name": "expires_in as a string", "status": 200, "expires_in": "3599"],
            ["name": "late", "status": 200, "delay_ms": ["p50": 200, "p99": 3000]], ["silence": true], ["drop": true],
            ["reset": 2],
        ]
    }
}
