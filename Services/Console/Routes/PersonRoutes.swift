import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// The person's page, and the deactivation of a device.
struct PersonRoutes: Sendable {
    let frame: ConsoleFrame
    let rules: OperatorAPI
    let registry: OperatorAPI

    func add(to router: Router<BasicRequestContext>) {
        router.get("person") { request, _ in
            await frame.page(request, for: .support) { query, session throws(APIError) in
                let (app, user) = (try query.required("app"), try query.required("user"))
                let parameters: [(String, String?)] = [("app", app), ("user", user)]
                async let history = answer(rules, "/v1/operator/notifications", parameters)
                async let devices = answer(registry, "/v1/operator/devices", parameters)
                async let preferences = answer(rules, "/v1/operator/preferences", parameters)
                let page = PersonPage(
                    app: app, user: user, history: await history, devices: await devices,
                    preferences: await preferences)
                return page.page(formToken: frame.keeper.formToken(of: session), role: session.role)
            }
        }
        router.post("device/deactivate") { request, _ in
            await frame.act(request, for: .operate, .deactivatedDevice, subject: "device") {
                fields, _ throws(APIError) in
                let app = fields["app"] ?? ""
                _ = try await registry.post(
                    "/v1/operator/devices/\(FormCoding.encoded(fields["device"] ?? ""))/deactivate", [("app", app)])
                return ("done", ConsoleFrame.redirect(to: Parts.personPath(fields["user"] ?? "", app: app)))
            }
        }
    }

    private func answer(
        _ api: OperatorAPI, _ path: String, _ query: [(String, String?)]
    ) async -> Result<JSONValue, APIError> {
        do throws(APIError) {
            return .success(try await api.get(path, query))
        } catch {
            return .failure(error)
        }
    }
}
