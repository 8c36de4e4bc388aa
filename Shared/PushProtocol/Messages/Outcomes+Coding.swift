extension Outcomes {
    private enum CodingKeys: String, CodingKey {
        case trace, app, origin, environment, lane
        case routeHealth = "pulse"
        case outcomes, accepted
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let accepted = try container.decodeIfPresent(AcceptedTable.self, forKey: .accepted)
        let listed =
            accepted == nil
            ? try container.decode([Outcome].self, forKey: .outcomes)
            : try container.decodeIfPresent([Outcome].self, forKey: .outcomes)
        self.init(
            trace: try container.decode(Trace.self, forKey: .trace),
            app: try container.decode(AppID.self, forKey: .app),
            origin: try container.decode(Origin.self, forKey: .origin),
            environment: try container.decodeIfPresent(ProviderEnvironment.self, forKey: .environment),
            lane: try container.decode(Lane.self, forKey: .lane),
            routeHealth: try container.decodeIfPresent(RouteHealth.self, forKey: .routeHealth),
            outcomes: (listed ?? []) + (accepted?.outcomes ?? []))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(trace, forKey: .trace)
        try container.encode(app, forKey: .app)
        try container.encode(origin, forKey: .origin)
        try container.encodeIfPresent(environment, forKey: .environment)
        try container.encode(lane, forKey: .lane)
        try container.encodeIfPresent(routeHealth, forKey: .routeHealth)
        if let accepted = AcceptedTable(outcomes) {
            try container.encode(accepted, forKey: .accepted)
        } else {
            try container.encode(outcomes, forKey: .outcomes)
        }
    }
}
