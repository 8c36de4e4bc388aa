import PushProtocol

/// A send call that FCM would take, as far as it can be judged without knowing the device.
struct FCMReview: Sendable {
    let project: String
    /// The registration token or FID; `nil` for a topic or a condition.
    let token: String?
    /// The topic it is for, if that is what it is for.
    let topic: String?
    let condition: FCMCondition?
    /// Which of the two fields it stood in.
    let tokenField: String
    let isDryRun: Bool

    /// Checks in the order of a front end: the path, the access token, the shape, the rules.
    init(_ request: ProviderRequest, project: String?, world: World) throws(FCMRefusal) {
        guard let project, request.method == "POST" else {
            throw FCMRefusal(status: 404, message: "there is nothing at this path for this method")
        }
        try Self.authorize(request, project: project, world: world)
        let message = try Self.message(of: request.body)
        self.project = project
        isDryRun = message.isDryRun
        tokenField = message.fields["fid"] == nil ? "token" : "fid"
        token = message.fields[tokenField]?.string
        topic = message.fields["topic"]?.string
        // The rules have read it already.
        condition = message.fields["condition"]?.string.flatMap { try? FCMCondition.read($0).get() }
    }

    private static func authorize(_ request: ProviderRequest, project: String, world: World) throws(FCMRefusal) {
        _ = try authorizedProject(request, project: project, world: world)
    }

    /// The project that the request's access token is for, which must be the one that the path names, if it names one.
    static func authorizedProject(
        _ request: ProviderRequest, project: String?, world: World
    ) throws(FCMRefusal) -> String {
        guard let authorization = request["authorization"], authorization.prefix(7).lowercased() == "bearer ",
            let grant = world.accessTokens.grant(for: String(authorization.dropFirst(7)), at: request.receivedAt)
        else { throw FCMRefusal(status: 401, message: "the access token is missing, unknown or expired") }
        guard let project else { return grant.project }
        guard world.apps.projects.contains(project) else {
            throw FCMRefusal(status: 404, message: "there is no such project")
        }
        guard grant.project == project else {
            throw FCMRefusal(status: 403, message: "the service account may not create messages in this project")
        }
        return project
    }

    private static func message(
        of body: [UInt8]
    ) throws(FCMRefusal) -> (fields: [String: JSONValue], isDryRun: Bool) {
        let value: JSONValue
        do throws(JSONReader.Failure) {
            value = try JSONReader.value(of: body)
        } catch {
            let problem = "the body is not JSON at byte \(error.offset): \(error.problem)"
            throw refused([FCMViolation(field: "", description: problem)])
        }
        var violations: [FCMViolation] = []
        let request = FCMMessageShape.sendRequest.read(value, at: "", &violations)
        // What the JSON front end refuses never reaches FCM, so there is no FcmError about it.
        guard violations.isEmpty else { throw refused(violations) }
        guard let message = request["message"]?.object else {
            throw refused([FCMViolation(field: "message", description: "the message is missing")], .invalidArgument)
        }
        let broken = FCMRules.violations(of: message)
        guard broken.isEmpty else { throw refused(broken, .invalidArgument) }
        return (message, request["validate_only"]?.bool ?? false)
    }

    /// The checks that know tokens.
    func checkToken(_ registrations: Registrations, at now: Timestamp) throws(FCMRefusal) {
        guard let token else { return }
        guard DeviceToken(token, for: .fcm) != nil else {
            let field = "message.\(tokenField)"
            throw Self.refused(
                [FCMViolation(field: field, description: "this is not a valid FCM registration token")],
                .invalidArgument)
        }
        guard let registration = registrations.fcm(token) else { return }
        guard registration.isKnown(in: tokenField, at: now) else {
            throw FCMRefusal(
                status: FCMErrorCode.unregistered.status, message: "there is no such FID", errorCode: .unregistered)
        }
        guard registration.project != project else { return }
        throw FCMRefusal(
            status: FCMErrorCode.senderIDMismatch.status, message: "the token belongs to another project",
            errorCode: .senderIDMismatch)
    }

    private static func refused(_ violations: [FCMViolation], _ code: FCMErrorCode? = nil) -> FCMRefusal {
        FCMRefusal(status: 400, message: violations[0].description, errorCode: code, violations: violations)
    }
}
