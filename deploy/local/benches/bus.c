/* A minimal broker client: librabbitmq without further layers.
 *
 *   bus load  URL EXCHANGE KEY TEMPLATE FIRST COUNT          publishes with confirms; prints the duration
 *   bus floor URL QUEUE EXCHANGE KEY RESULT FIRST COUNT PREFETCH
 *             consumes, publishes a result, waits for its confirm, acknowledges; also prints the delays
 *   bus count URL QUEUE                                      empties a queue and counts the outcomes in it
 *   bus pace  URL EXCHANGE KEY TEMPLATE QUEUE FIRST RATE SECONDS
 *             publishes at a steady rate, and prints the delays until a consumer of QUEUE gets each outcome
 *
 * TEMPLATE is a file; "@@@@@@@@@@@@" in it is replaced by the message's number in hexadecimal. An outcome is identified by
 * MARK followed by that number. Prints one line of JSON. */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define DIGITS 12
static const char HOLE[] = "@@@@@@@@@@@@";
static const char MARK[] = "00000001-0000-5000-8000-";
static const char DEVICE[] = "00000003-0000-5000-8000-";
static const int WINDOW = 2000; /* published and not yet confirmed */

__attribute__((noreturn)) static void die(const char *what) {
  fprintf(stderr, "bus: %s\n", what);
  exit(1);
}
static void check(int status, const char *what) {
  if (status < 0) {
    fprintf(stderr, "bus: %s: %s\n", what, amqp_error_string2(status));
    exit(1);
  }
}
static void expect(amqp_rpc_reply_t reply, const char *what) {
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) die(what);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static amqp_connection_state_t dial(char *url) {
  struct amqp_connection_info info;
  char *copy = strdup(url); /* split in place; the parts stay in use */
  check(amqp_parse_url(copy, &info), "the URL cannot be read");
  amqp_connection_state_t bus = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(bus);
  check(amqp_socket_open(socket, info.host, info.port), "cannot connect");
  int on = 1;
  setsockopt(amqp_get_sockfd(bus), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  expect(amqp_login(bus, info.vhost, 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password), "login refused");
  amqp_channel_open(bus, 1);
  expect(amqp_get_rpc_reply(bus), "no channel");
  return bus;
}
static void hang_up(amqp_connection_state_t bus) {
  amqp_connection_close(bus, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(bus);
}

/* Messages that differ only in their number. */
struct message {
  char *text;
  size_t size;
  char **holes;
  size_t count;
};
static struct message read_template(const char *path) {
  struct message m = {0};
  FILE *file = fopen(path, "rb");
  if (!file) die("the template cannot be read");
  fseek(file, 0, SEEK_END);
  m.size = ftell(file);
  rewind(file);
  m.text = calloc(m.size + 1, 1);
  if (fread(m.text, 1, m.size, file) != m.size) die("the template cannot be read");
  fclose(file);
  for (char *at = m.text; (at = strstr(at, HOLE)); at += DIGITS) {
    m.holes = realloc(m.holes, ++m.count * sizeof *m.holes);
    m.holes[m.count - 1] = at;
  }
  return m;
}
static amqp_bytes_t number(struct message *m, unsigned long n) {
  char digits[DIGITS + 1];
  snprintf(digits, sizeof digits, "%012lx", n);
  for (size_t i = 0; i < m->count; i++) memcpy(m->holes[i], digits, DIGITS);
  return (amqp_bytes_t){.len = m->size, .bytes = m->text};
}

static void publish(amqp_connection_state_t bus, const char *exchange, const char *key, amqp_bytes_t body) {
  amqp_basic_properties_t properties = {
      ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG,
      .content_type = amqp_cstring_bytes("application/json"),
      .delivery_mode = 2,
  };
  check(amqp_basic_publish(bus, 1, amqp_cstring_bytes(exchange), amqp_cstring_bytes(key), 1, 0, &properties, body),
        "cannot publish");
}

/* Confirms arrive singly, in groups and out of order; counts up to the first gap. */
struct confirms {
  unsigned char *seen;
  unsigned long through, limit;
};
static struct confirms expect_confirms(amqp_connection_state_t bus, unsigned long limit) {
  amqp_confirm_select(bus, 1);
  expect(amqp_get_rpc_reply(bus), "no confirms");
  return (struct confirms){.seen = calloc(limit + 2, 1), .limit = limit};
}
static void confirm(struct confirms *c, amqp_basic_ack_t *ack) {
  if (ack->multiple) {
    for (unsigned long tag = c->through + 1; tag <= ack->delivery_tag; tag++) c->seen[tag] = 1;
  } else {
    c->seen[ack->delivery_tag] = 1;
  }
  while (c->through < c->limit && c->seen[c->through + 1]) c->through++;
}

/* Reads and handles one frame. Returns 1 and fills `delivery` if it starts a delivery. */
static int take(amqp_connection_state_t bus, struct confirms *confirms, amqp_message_t *delivery) {
  amqp_frame_t frame;
  check(amqp_simple_wait_frame(bus, &frame), "the connection ended");
  if (frame.frame_type != AMQP_FRAME_METHOD) return 0;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_ACK_METHOD:
      confirm(confirms, frame.payload.method.decoded);
      return 0;
    case AMQP_BASIC_DELIVER_METHOD:
      expect(amqp_read_message(bus, 1, delivery, 0), "a delivery was cut off");
      return 1;
    case AMQP_BASIC_NACK_METHOD: die("the broker refused a message");
    case AMQP_BASIC_RETURN_METHOD: die("a message reached no queue");
    default: die("the broker closed the channel");
  }
  return 0;
}

static void consume(amqp_connection_state_t bus, const char *queue, int prefetch, int no_ack) {
  amqp_basic_qos(bus, 1, 0, prefetch, 0);
  expect(amqp_get_rpc_reply(bus), "no prefetch");
  amqp_basic_consume(bus, 1, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, no_ack, 0, amqp_empty_table);
  expect(amqp_get_rpc_reply(bus), "cannot consume");
}
static int nothing_waits(amqp_connection_state_t bus) {
  return !amqp_data_in_buffer(bus) && !amqp_frames_enqueued(bus);
}

static void load(char **a) {
  amqp_connection_state_t bus = dial(a[0]);
  struct message message = read_template(a[3]);
  unsigned long first = strtoul(a[4], NULL, 10), count = strtoul(a[5], NULL, 10), sent = 0;
  struct confirms confirms = expect_confirms(bus, count);
  double start = now();
  while (confirms.through < count) {
    if (sent < count && sent - confirms.through < (unsigned long)WINDOW) {
      publish(bus, a[1], a[2], number(&message, first + sent++));
    } else {
      take(bus, &confirms, NULL);
      amqp_maybe_release_buffers(bus);
    }
  }
  printf("{\"messages\": %lu, \"seconds\": %.6f}\n", count, now() - start);
  hang_up(bus);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
/* Sorts delays in milliseconds and returns a quantile. */
static double quantile(double *waits, unsigned long count, double share) {
  qsort(waits, count, sizeof *waits, by_value);
  return waits[(unsigned long)floor(count * share)];
}

static void stand_on_floor(char **a) {
  amqp_connection_state_t bus = dial(a[0]);
  struct message result = read_template(a[4]);
  unsigned long first = strtoul(a[5], NULL, 10), count = strtoul(a[6], NULL, 10), sent = 0, acknowledged = 0;
  struct confirms confirms = expect_confirms(bus, count);
  double *waits = calloc(count, sizeof *waits); /* first the arrival time, then the delay */
  consume(bus, a[1], atoi(a[7]), 0);
  double start = now(), before = cpu();
  while (acknowledged < count) {
    amqp_message_t delivery;
    if (take(bus, &confirms, &delivery)) {
      waits[sent] = now();
      publish(bus, a[2], a[3], number(&result, first + sent++));
      amqp_destroy_message(&delivery);
    }
    /* Delivery tags equal publish numbers: each delivery causes one publish. */
    if (confirms.through - acknowledged >= 64 || (confirms.through > acknowledged && nothing_waits(bus))) {
      double instant = now();
      for (; acknowledged < confirms.through; acknowledged++)
        waits[acknowledged] = (instant - waits[acknowledged]) * 1000;
      check(amqp_basic_ack(bus, 1, acknowledged, 1), "cannot acknowledge");
    }
    amqp_maybe_release_buffers(bus);
  }
  double seconds = now() - start, used = cpu() - before;
  /* The first tenth is warm-up. */
  double *warm = waits + count / 10;
  unsigned long n = count - count / 10;
  printf("{\"messages\": %lu, \"seconds\": %.6f, \"cpu\": %.6f, \"p50\": %.3f, \"p99\": %.3f}\n", count, seconds, used,
         quantile(warm, n, 0.5), quantile(warm, n, 0.99));
  hang_up(bus);
}

/* Calls `found`, if given, with the number after each `mark` in a body. Returns the count. */
static unsigned long scan(amqp_bytes_t body, const char *mark, void (*found)(unsigned long number)) {
  unsigned long count = 0;
  const char *at = body.bytes, *end = at + body.len;
  while ((at = memmem(at, end - at, mark, strlen(mark)))) {
    at += strlen(mark);
    if (end - at < DIGITS) break;
    char digits[DIGITS + 1] = {0};
    memcpy(digits, at, DIGITS);
    if (found) found(strtoul(digits, NULL, 16));
    count++;
  }
  return count;
}

static unsigned char *answered; /* outcomes by number; saturates */
static unsigned long most_numbers = 1UL << 24, repeated, strangers;
static void tick(unsigned long n) {
  if (n >= most_numbers) strangers++;
  else if (answered[n]) repeated++;
  else answered[n] = 1;
}
static void count(char **a) {
  amqp_connection_state_t bus = dial(a[0]);
  answered = calloc(most_numbers, 1);
  unsigned long messages = 0, outcomes = 0, different = 0;
  for (;;) {
    amqp_rpc_reply_t reply = amqp_basic_get(bus, 1, amqp_cstring_bytes(a[1]), 1);
    expect(reply, "cannot get");
    if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) break;
    amqp_message_t message;
    expect(amqp_read_message(bus, 1, &message, 0), "a message was cut off");
    scan(message.body, MARK, tick);
    outcomes += scan(message.body, DEVICE, NULL);
    amqp_destroy_message(&message);
    amqp_maybe_release_buffers(bus);
    messages++;
  }
  for (unsigned long n = 0; n < most_numbers; n++) different += answered[n];
  printf("{\"messages\": %lu, \"outcomes\": %lu, \"numbers\": %lu, \"repeated\": %lu}\n", messages, outcomes, different,
         repeated);
  hang_up(bus);
}

static double *sent_at, *taken_at;
static unsigned long paced_first, paced_count;
static volatile unsigned long arrived;
static void stamp(unsigned long n) {
  n -= paced_first;
  if (n >= paced_count || taken_at[n] > 0) return;
  taken_at[n] = now();
  arrived++;
}
static void *listen_for_outcomes(void *bus) {
  while (arrived < paced_count) {
    amqp_message_t message;
    struct confirms none = {0};
    if (take(bus, &none, &message)) {
      scan(message.body, MARK, stamp);
      amqp_destroy_message(&message);
    }
    amqp_maybe_release_buffers(bus);
  }
  return NULL;
}
static void pace(char **a) {
  amqp_connection_state_t bus = dial(a[0]), ear = dial(a[0]);
  struct message message = read_template(a[3]);
  double rate = atof(a[6]), seconds = atof(a[7]);
  paced_first = strtoul(a[5], NULL, 10);
  paced_count = (unsigned long)(rate * seconds);
  sent_at = calloc(paced_count, sizeof *sent_at);
  taken_at = calloc(paced_count, sizeof *taken_at);
  consume(ear, a[4], 0, 1);
  pthread_t listener;
  pthread_create(&listener, NULL, listen_for_outcomes, ear);
  struct confirms confirms = expect_confirms(bus, paced_count);
  double start = now();
  unsigned long sent = 0;
  while (sent < paced_count) {
    unsigned long due = (unsigned long)((now() - start) * rate) + 1;
    for (; sent < due && sent < paced_count; sent++) {
      sent_at[sent] = now();
      publish(bus, a[1], a[2], number(&message, paced_first + sent));
    }
    struct timeval instant = {0, 0};
    amqp_frame_t frame;
    int status;
    while ((status = amqp_simple_wait_frame_noblock(bus, &frame, &instant)) == AMQP_STATUS_OK)
      if (frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("the broker refused a message");
    if (status != AMQP_STATUS_TIMEOUT) check(status, "the connection ended");
    amqp_maybe_release_buffers(bus);
    struct timespec pause = {0, 500000};
    nanosleep(&pause, NULL);
  }
  double published = now() - start;
  pthread_join(listener, NULL);
  (void)confirms;
  /* The first tenth is warm-up: connections, caches. */
  unsigned long skipped = paced_count / 10, n = paced_count - skipped;
  double *waits = malloc(n * sizeof *waits);
  for (unsigned long i = 0; i < n; i++) waits[i] = (taken_at[skipped + i] - sent_at[skipped + i]) * 1000;
  double p50 = quantile(waits, n, 0.5), p99 = quantile(waits, n, 0.99);
  printf("{\"messages\": %lu, \"rate\": %.1f, \"p50\": %.3f, \"p99\": %.3f, \"worst\": %.3f}\n", paced_count,
         paced_count / published, p50, p99, waits[n - 1]);
  hang_up(bus);
  hang_up(ear);
}

int main(int argc, char **argv) {
  struct {
    const char *name;
    int arguments;
    void (*run)(char **);
  } modes[] = {{"load", 6, load}, {"floor", 8, stand_on_floor}, {"count", 2, count}, {"pace", 8, pace}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (argc > 1 && strcmp(argv[1], modes[i].name) == 0 && argc == 2 + modes[i].arguments) {
      modes[i].run(argv + 2);
      return 0;
    }
  }
  die("usage: bus load|floor|count|pace ARGUMENTS, see the top of bus.c");
}
