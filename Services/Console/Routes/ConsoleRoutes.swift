import FoundationEssentials
import HTTPAuth
import HTTPSFetch
import HTTPTypes
import Hummingbird
import NIOCore
import PushProtocol
import ServiceKit

/// All pages of the console.
struct ConsoleRoutes: Sendable {
    let frame: ConsoleFrame
    let signIn: SignInRoutes.Method
    let rules: OperatorAPI
    let registry: OperatorAPI
    let links: Seal
    let services: [ObservedService]
    let adminFetch: HTTPSFetch
    let apps: @Sendable () -> [AppID]

    var router: Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        SignInRoutes(frame: frame, method: signIn).add(to: router)
        EventRoutes(frame: frame, rules: rules, links: links).add(to: router)
        PersonRoutes(frame: frame, rules: rules, registry: registry).add(to: router)
        router.get("/") { request, _ in
            // People without access to persons begin at the counts.
            if let session = frame.keeper.session(of: request), session.role < .support {
                return ConsoleFrame.redirect(to: Page.Section.rules.path)
            }
            return await frame.page(request, for: .support) { _, _ in SearchPage.page(apps: apps()) }
        }
        router.get("rules") { request, _ in
            await frame.page(request, for: .look) { query, _ throws(APIError) in
                let window = query["window"].flatMap(RulesPage.Window.init) ?? .day
                let from = frame.now().addingTimeInterval(-86_400 * Double(window.days))
                let counts = try await rules.get("/v1/operator/counts", [("from", RFC3339.string(from: from))])
                return RulesPage(counts: counts, window: window).page()
            }
        }
        router.get("live") { request, _ in
            await frame.page(request, for: .look) { query, _ in
                LivePage(states: await states(), refreshes: query.has("refresh")).page()
            }
        }
        router.get("audit") { request, _ in
            await frame.page(request, for: .operate) { _, _ throws(APIError) in
                do {
                    return AuditPage.page(try await frame.audit.last(AuditPage.entries))
                } catch {
                    throw APIError(
                        status: .internalServerError,
                        message: "The audit log cannot be read. An operator looks at CONSOLE_AUDIT_FILE.")
                }
            }
        }
        router.get("console.css") { _, _ in
            ConsoleFrame.response(.ok, "text/css; charset=utf-8", PackageResources.console_css)
        }
        return router
    }

    private func states() async -> [ObservedService.State] {
        let fetch = adminFetch
        return await withTaskGroup(of: (Int, ObservedService.State).self) { group in
            for (index, service) in services.enumerated() { group.addTask { (index, await service.state(fetch)) } }
            var states: [(Int, ObservedService.State)] = []
            for await state in group { states.append(state) }
            return states.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}
