#pragma once

// Debian 12 ships librabbitmq 0.11 with <amqp.h>; newer releases moved the headers into a folder.
#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

#include <sys/eventfd.h>
#include <sys/prctl.h>

/// amqp_login_with_properties is variadic, which Swift cannot call.
static inline amqp_rpc_reply_t shim_amqp_login_plain(
    amqp_connection_state_t state, char const *vhost, int channel_max, int frame_max, int heartbeat,
    amqp_table_t const *properties, char const *user, char const *password) {
  return amqp_login_with_properties(
      state, vhost, channel_max, frame_max, heartbeat, properties, AMQP_SASL_METHOD_PLAIN, user, password);
}

/// librabbitmq 0.11 cannot be told to use the system's authorities; its OpenSSL context can. Declared here rather than
/// through OpenSSL's headers, of which nothing else is needed.
struct ssl_ctx_st;
extern int SSL_CTX_set_default_verify_paths(struct ssl_ctx_st *context);
static inline int shim_amqp_ssl_trust_system(amqp_socket_t *socket) {
  return SSL_CTX_set_default_verify_paths((struct ssl_ctx_st *)amqp_ssl_socket_get_context(socket));
}

/// Swift's overlay of the C library leaves <sys/eventfd.h> out.
static inline int shim_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

/// prctl is variadic. Names the calling thread, as `top -H` and debuggers show it; cut to 15 bytes.
static inline void shim_name_thread(char const *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
