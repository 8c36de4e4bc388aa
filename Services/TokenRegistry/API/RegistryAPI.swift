import HTTPGate
import HTTPTypes
import Hummingbird
import NIOCore

/// Everything that the registry serves over HTTP, which is what `openapi.yaml` says it is.
enum RegistryAPI {
    static func router(
        store: RegistrationStore, gate: BearerGate, keys: KeyGate
    ) -> Router<BasicRequestContext> {
        let router = routes(store: store, gate: gate, keys: keys)
        router.refuseOtherMethods()
        return router
    }

    /// The routes alone, without the refusals of other methods.
    static func routes(
        store: RegistrationStore, gate: BearerGate, keys: KeyGate
    ) -> Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        RegistrationRoutes(store: store, gate: gate).add(to: router)
        InstallationRoutes(store: store, gate: gate).add(to: router)
        TopicRoutes(store: MembershipStore(store.database), gate: gate).add(to: router)
        OperatorRoutes(store: store, keys: keys, census: Census(CensusStore(store.database))).add(to: router)
        router.get("openapi.yaml") { _, _ in
            Response(
                // RFC 9512.
                status: .ok, headers: [.contentType: "application/yaml"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_yaml)))
        }
        return router
    }
}
