/// The connections and callers of a pool at one moment.
package struct PoolStatistics: Hashable, Sendable {
    /// The maximum of connections.
    package let size: Int
    /// Connections that a caller has, or that are being checked.
    package let inUse: Int
    package let idle: Int
    /// Callers that wait for a connection.
    package let waiting: Int
}
