package import AMQP
package import Logging
package import Postgres

extension Settings {
    /// The broker of `AMQP_URL`, trusted by `AMQP_CA_FILE`. `AMQP_URL_FILE` is read again before each connection.
    ///
    /// - Parameter connectionName: How the broker lists the connections.
    package func amqp(connectionName: String, logger: Logger) throws(ConfigurationError) -> AMQPConfiguration {
        let url = try string(.amqpURL)
        let caFile = try optionalString(.amqpCAFile)
        do {
            var configuration = try AMQPConfiguration(url: url, connectionName: connectionName, caFile: caFile)
            configuration.currentURL = try rotation(of: .amqpURL, logger: logger)
            return configuration
        } catch let error as AMQPError {
            throw ConfigurationError("\(ConfigurationKey.amqpURL.name): \(error.detail)")
        } catch {
            throw ConfigurationError("\(error)")
        }
    }

    /// The database of `DATABASE_URL`. `DATABASE_URL_FILE` is read again before each connection.
    ///
    /// - Parameter applicationName: How the server lists the connections.
    package func postgres(
        poolSize: Int, applicationName: String, logger: Logger
    ) throws(ConfigurationError) -> PostgresConfiguration {
        let url = try string(.databaseURL)
        do {
            var configuration = try PostgresConfiguration(
                url: url, poolSize: poolSize, applicationName: applicationName)
            configuration.currentURL = try rotation(of: .databaseURL, logger: logger)
            return configuration
        } catch let error as PostgresError {
            throw ConfigurationError("\(ConfigurationKey.databaseURL.name): \(error.detail)")
        } catch {
            throw ConfigurationError("\(error)")
        }
    }
}
