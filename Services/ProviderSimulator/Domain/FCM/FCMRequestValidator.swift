import PushProtocol

/// A validated send request. Checks that need the device's registration come later.
struct FCMRequestValidator: Sendable {
    let project: String
    /// The registration token or FID; `nil` for a topic or a condition.
    let token: String?
    /// The topic, if the message addresses one.
    let topic: String?
    let condition: FCMCondition?
    /// `token` or `fid`: the field that held the token.
    let tokenField: String
    let isDryRun: Bool

    /// Validates in this order: path, access token, JSON shape, message rules.
    init(_ request: ProviderRequest, project: String?, state: SimulatorState) throws(FCMRejection) {
        guard let project, request.method == "POST" else {
            throw FCMRejection(status: 404, message: "no resource at this path for this method")
        }
        try Self.authorize(request, project: project, state: state)
        let message = try Self.message(of: request.body)
        self.project = project
        isDryRun = message.isDryRun
        tokenField = message.fields["fid"] == nil ? "token" : "fid"
        token = message.fields[tokenField]?.string
        topic = message.fields["topic"]?.string
        // The message rules have validated it.
        condition = message.fields["condition"]?.string.flatMap { try? FCMCondition.read($0).get() }
    }

    private static func authorize(_ request: ProviderRequest, project: String, state: SimulatorState)
        throws(FCMRejection)
    {
        _ = try authorizedProject(request, project: project, state: state)
    }

    /// The project of the request's access token. It must match the project in the path, if there is one.
    static func authorizedProject(
        _ request: ProviderRequest, project: String?, state: SimulatorState
    ) throws(FCMRejection) -> String {
        guard let authorization = request["authorization"], authorization.prefix(7).lowercased() == "bearer ",
            let grant = state.accessTokens.grant(for: String(authorization.dropFirst(7)), at: request.receivedAt)
        else { throw FCMRejection(status: 401, message: "the access token is missing, unknown or expired") }
        guard let project else { return grant.project }
        guard state.apps.projects.contains(project) else {
            throw FCMRejection(status: 404, message: "there is no such project")
        }
        guard grant.project == project else {
            throw FCMRejection(status: 403, message: "the service account has no permission for this project")
        }
        return project
    }

    private static func message(
        of body: [UInt8]
    ) throws(FCMRejection) -> (fields: [String: JSONValue], isDryRun: Bool) {
        let value: JSONValue
        do throws(ProviderJSON.Failure) {
            value = try ProviderJSON.value(of: body)
        } catch {
            let problem = "the body is not JSON at byte \(error.offset)"
            throw refused([FCMViolation(field: "", description: problem)])
        }
        var violations: [FCMViolation] = []
        let request = FCMMessageShape.sendRequest.read(value, at: "", &violations)
        // Google's JSON parser answers these errors before FCM sees the request, so they carry no FcmError.
        guard violations.isEmpty else { throw refused(violations) }
        guard let message = request["message"]?.object else {
            throw refused([FCMViolation(field: "message", description: "the message is missing")], .invalidArgument)
        }
        let broken = FCMRules.violations(of: message)
        guard broken.isEmpty else { throw refused(broken, .invalidArgument) }
        return (message, request["validate_only"]?.bool ?? false)
    }

    func checkToken(_ pinnedTokens: PinnedTokens, at now: Timestamp) throws(FCMRejection) {
        guard let token else { return }
        guard DeviceToken(token, for: .fcm) != nil else {
            let field = "message.\(tokenField)"
            throw Self.refused(
                [FCMViolation(field: field, description: "this is not a valid FCM registration token")],
                .invalidArgument)
        }
        guard let registration = pinnedTokens.fcm(token) else { return }
        guard registration.isKnown(in: tokenField, at: now) else {
            throw FCMRejection(
                status: FCMErrorCode.unregistered.status, message: "the FID does not exist", errorCode: .unregistered)
        }
        guard registration.project != project else { return }
        throw FCMRejection(
            status: FCMErrorCode.senderIDMismatch.status, message: "the token belongs to another project",
            errorCode: .senderIDMismatch)
    }

    private static func refused(_ violations: [FCMViolation], _ code: FCMErrorCode? = nil) -> FCMRejection {
        FCMRejection(status: 400, message: violations[0].description, errorCode: code, violations: violations)
    }
}
