/// The state of each service, the routes to the providers and the age of the queues.
struct LivePage {
    let states: [ObservedService.State]
    let refreshes: Bool

    func page() -> Page {
        Page(
            title: "Live", section: .live,
            content: """
                <p>\(refreshes ? Parts.link("/live", "Stop loading every 5 seconds") : Parts.link("/live?refresh=5", "Load every 5 seconds"))</p>
                \(services)\(routes)\(queues)
                """, refresh: refreshes ? 5 : nil)
    }

    private var services: HTML {
        let rows = states.map { state in
            Parts.row([
                "\(state.service)", Parts.word(Self.word(state.readiness)),
                state.reasons.isEmpty ? "–" : "\(state.reasons.map { reason -> HTML in "<div>\(reason)</div>" })",
            ])
        }
        return Parts.table(
            "Services", ["Service", "State", "Conditions that do not hold"], rows,
            none: "No service is observed. Set CONSOLE_SERVICES.")
    }

    private static func word(_ readiness: ObservedService.State.Readiness) -> String {
        switch readiness {
        case .ready: "ready"
        case .draining: "draining"
        case .notReady: "not ready"
        case .away: "away"
        }
    }

    private var routes: HTML {
        let rows = states.flatMap { state in
            state.metrics["heliograph_route_open"].map { sample in
                Parts.row([
                    "\(state.service)",
                    "\(["app", "environment"].compactMap { sample.labels[$0] }.joined(separator: ", "))",
                    sample.value == 1 ? Parts.word("open") : "<span class=\"word bad\">paused</span>",
                ])
            }
        }
        return Parts.table(
            "Routes to providers", ["Service", "Route", "State"], rows, none: "No route reports its state.")
    }

    private var queues: HTML {
        let ages = states.flatMap { state in
            state.metrics["heliograph_queue_age_seconds"].filter { $0.value > 0 }.map { (state.service, $0) }
        }
        let rows = ages.sorted { $0.1.value > $1.1.value }.prefix(50).map { service, sample in
            Parts.row(["\(service)", "\(sample.labels["queue"] ?? "")", "\(EventPage.spelled(sample.value))"])
        }
        return Parts.table(
            "Age of the oldest message", ["Service", "Queue", "Age"], rows, none: "No message waits.")
    }
}
