/* load: a load client for chat completions, one thread. Prints one line of JSON.
 *
 *   load -u http://127.0.0.1:PORT/v1/chat/completions -k KEY -M MODEL -n CONNECTIONS -t SECONDS [-w WARM_SECONDS]
 *        [-S] [-c CHUNKS] [-d DELAY_MS] [-r RATE] [-B BODY_BYTES] [-g STAGGER_MS] [-o] [-p PID]...
 *
 *   -S       event streams of CHUNKS content chunks, DELAY_MS apart
 *   -r RATE  requests/s on a fixed clock, latency counted from the moment that was planned (no co-ordinated omission);
 *            without it each connection sends its next request when the last one ended
 *   -g MS    spreads the first requests of the connections over this time
 *   -o       each connection makes one request, then the run ends
 *   -p PID   a process of the gateway: its CPU time and memory over the measured time are told, in the order given
 *
 * Latencies are microseconds. `first`: request sent to first content chunk. `hop`: the mock's write of a content chunk to
 * its arrival here.
 */
#include "http.h"
#include "measure.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_EVENTS 512
#define STAMP_DIGITS 16

typedef struct {
  int fd, chunked, closing, reused, code, chunks, done, usage;
  enum { IDLE, CONNECTING, SENDING, READING_HEAD, READING_BODY, FINISHED } state;
  size_t sent, head_length, body_left, line_length;
  uint64_t started, planned, due; /* `due`: when an idle connection starts by itself; 0 never */
  dechunker dechunker;
  char head[8192], line[512];
} connection;

static struct {
  const char *url, *key, *model;
  int connections, seconds, warm, stream, chunks, delay_ms, stagger_ms, once;
  double rate;
  size_t body_bytes;
} options = {.key = "", .model = "mock-model", .connections = 1, .seconds = 3, .warm = 1, .chunks = 20};

static struct sockaddr_in address;
static int epoll_fd, measuring, idle_count, running, finished;
static uint64_t now, ends_at;
static connection *connections, **idle;
static char *request;
static size_t request_length;
static struct { uint64_t ok, refused, broken, cut, late, chunks; histogram latency, first, hop; } seen;

static void send_request(connection *c);

static void begin(connection *c, uint64_t planned) {
  c->planned = planned;
  c->started = now;
  c->due = 0;
  c->sent = c->head_length = c->line_length = 0;
  c->chunks = c->done = c->usage = 0;
  c->reused = c->fd >= 0;
  running++;
  if (c->reused) {
    send_request(c);
    return;
  }
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (c->fd < 0) {
    perror("load: socket");
    exit(1);
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
  connect(c->fd, (struct sockaddr *)&address, sizeof address);
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
  c->state = CONNECTING;
}

static void drop(connection *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
}

static void count_answer(connection *c) {
  if (c->code != 200) {
    seen.refused++;
    return;
  }
  seen.ok++;
  add(&seen.latency, now - c->planned);
  if (options.stream && (c->chunks != options.chunks || !c->done || !c->usage)) seen.cut++;
}

static void finish(connection *c, int broken) {
  running--;
  if (c->closing || broken) drop(c);
  if (measuring && broken) seen.broken++;
  else if (measuring) count_answer(c);
  c->state = IDLE;
  if (options.once) {
    c->state = FINISHED;
    finished++;
  } else if (options.rate > 0) idle[idle_count++] = c;
  else if (broken || c->code != 200) c->due = now + SECOND_NS / 100; /* no spinning on errors */
  else if (now < ends_at) begin(c, now);
}

/* An idle connection that the other side closed, as it may: the request goes on a new one. */
static void start_again(connection *c) {
  running--;
  drop(c);
  begin(c, c->planned);
}

static void send_request(connection *c) {
  c->state = SENDING;
  while (c->sent < request_length) {
    ssize_t n = send(c->fd, request + c->sent, request_length - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {
      if (c->reused) start_again(c);
      else finish(c, 1);
      return;
    }
    c->sent += (size_t)n;
  }
  c->state = READING_HEAD;
}

static void read_line(connection *c) {
  c->line[c->line_length] = 0;
  if (strncmp(c->line, "data:", 5)) return;
  char *stamp = strstr(c->line, "@T");
  if (stamp && strspn(stamp + 2, "0123456789") == STAMP_DIGITS) {
    uint64_t written = strtoull(stamp + 2, NULL, 10);
    if (measuring) {
      seen.chunks++;
      add(&seen.hop, now > written ? now - written : 0);
      if (!c->chunks) add(&seen.first, now - c->started);
    }
    c->chunks++;
  } else if (strstr(c->line, "[DONE]")) c->done = 1;
  else if (strstr(c->line, "_tokens\":")) c->usage = 1;
}

static void read_content(void *context, const char *p, size_t n) {
  connection *c = context;
  while (options.stream && c->code == 200 && n) {
    const char *line_end = memchr(p, '\n', n);
    size_t length = line_end ? (size_t)(line_end - p) : n, room = sizeof c->line - 1 - c->line_length;
    size_t kept = length < room ? length : room;
    memcpy(c->line + c->line_length, p, kept);
    c->line_length += kept;
    if (!line_end) return;
    read_line(c);
    c->line_length = 0;
    p += length + 1;
    n -= length + 1;
  }
}

/* Returns how many of the bytes belonged to the headers. */
static size_t read_head(connection *c, const char *p, size_t n) {
  size_t before = c->head_length, room = sizeof c->head - 1 - before, taken = n < room ? n : room, length, value_length;
  memcpy(c->head + before, p, taken);
  c->head_length += taken;
  char *blank = memmem(c->head, c->head_length, "\r\n\r\n", 4);
  if (!blank) {
    if (taken == room) finish(c, 1);
    return n;
  }
  length = (size_t)(blank - c->head) + 4;
  c->code = atoi(c->head + strlen("HTTP/1.1 "));
  const char *value = find_header(c->head, length, "connection", &value_length);
  c->closing = value && value_length == 5 && !strncasecmp(value, "close", 5);
  c->chunked = find_header(c->head, length, "transfer-encoding", &value_length) != NULL;
  memset(&c->dechunker, 0, sizeof c->dechunker);
  value = find_header(c->head, length, "content-length", &value_length);
  c->body_left = value ? strtoull(value, NULL, 10) : 0;
  c->state = READING_BODY;
  if (!c->chunked && !c->body_left) finish(c, !value);
  return length - before;
}

static void read_answer(connection *c, const char *p, size_t n) {
  while (n && (c->state == READING_HEAD || c->state == READING_BODY)) {
    size_t used;
    if (c->state == READING_HEAD) {
      used = read_head(c, p, n);
    } else if (c->chunked) {
      used = dechunk(&c->dechunker, p, n, read_content, c);
      if (c->dechunker.broken || c->dechunker.done) finish(c, c->dechunker.broken);
    } else {
      used = n < c->body_left ? n : c->body_left;
      read_content(c, p, used);
      c->body_left -= used;
      if (!c->body_left) finish(c, 0);
    }
    p += used;
    n -= used;
  }
}

static void on_closed(connection *c) {
  if (c->state == IDLE) drop(c);
  else if (c->reused && c->state != READING_BODY && !c->head_length) start_again(c);
  else if (c->state != FINISHED) finish(c, 1);
}

static void on_socket(connection *c, uint32_t events) {
  static char buffer[256 * 1024];
  now = now_ns();
  if (c->state == CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) {
      finish(c, 1);
      return;
    }
    c->state = SENDING;
  }
  if (c->state == SENDING && events & EPOLLOUT) send_request(c);
  while (c->fd >= 0 && events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    now = now_ns();
    if (n > 0) read_answer(c, buffer, (size_t)n);
    else if (n == 0 || errno != EAGAIN) {
      on_closed(c);
      return;
    } else return;
  }
}

/* Starts what is due. Returns when to look again. */
static uint64_t start_due(uint64_t started) {
  static uint64_t planned;
  uint64_t next = now + SECOND_NS / 20;
  if (options.rate > 0) {
    for (;;) {
      uint64_t at = started + (uint64_t)((double)planned * 1e9 / options.rate);
      if (at > now) return at < next ? at : next;
      planned++;
      if (idle_count) begin(idle[--idle_count], at);
      else if (measuring) seen.late++;
    }
  }
  for (connection *c = connections; c < connections + options.connections; c++) {
    if (!c->due) continue;
    if (c->due <= now) begin(c, now);
    else if (c->due < next) next = c->due;
  }
  return next;
}

static void make_request(void) {
  char host[64], path[256];
  int port;
  if (!options.url || sscanf(options.url, "http://%63[^:/]:%d%255s", host, &port, path) != 3 || strncmp(host, "127.", 4)) {
    fprintf(stderr, "load: -u must be http://127.…:PORT/PATH\n");
    exit(2);
  }
  address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, host, &address.sin_addr);
  static const char words[] = "lorem ipsum dolor sit amet consectetur adipiscing elit ";
  char *body = malloc(options.body_bytes + 4096);
  size_t n = (size_t)sprintf(body,
                             "{\"model\":\"%s\",%s\"temperature\":0.7,\"messages\":[{\"role\":\"system\",\"content\":"
                             "\"You are a helpful assistant.\"},{\"role\":\"user\",\"content\":\"Hello @mock{c=%d,d=%d} ",
                             options.model,
                             options.stream ? "\"stream\":true,\"stream_options\":{\"include_usage\":true}," : "",
                             options.chunks, options.delay_ms);
  while (n + 4 < options.body_bytes) {
    body[n] = words[n % (sizeof words - 1)];
    n++;
  }
  n += (size_t)sprintf(body + n, "\"}]}");
  request = malloc(n + 4096);
  request_length = (size_t)sprintf(request,
                                   "POST %s HTTP/1.1\r\nHost: %s:%d\r\nAuthorization: Bearer %s\r\nContent-Type: "
                                   "application/json\r\nAccept: %s\r\nUser-Agent: bench\r\nContent-Length: %zu\r\n\r\n",
                                   path, host, port, options.key,
                                   options.stream ? "text/event-stream" : "application/json", n);
  memcpy(request + request_length, body, n);
  request_length += n;
  free(body);
}

static void read_options(int argc, char **argv) {
  for (int o; (o = getopt(argc, argv, "u:k:M:n:t:w:Sc:d:r:B:g:op:")) > 0;) switch (o) {
    case 'u': options.url = optarg; break;
    case 'k': options.key = optarg; break;
    case 'M': options.model = optarg; break;
    case 'n': options.connections = atoi(optarg); break;
    case 't': options.seconds = atoi(optarg); break;
    case 'w': options.warm = atoi(optarg); break;
    case 'S': options.stream = 1; break;
    case 'c': options.chunks = atoi(optarg); break;
    case 'd': options.delay_ms = atoi(optarg); break;
    case 'r': options.rate = atof(optarg); break;
    case 'B': options.body_bytes = strtoull(optarg, NULL, 10); break;
    case 'g': options.stagger_ms = atoi(optarg); break;
    case 'o': options.once = 1; break;
    case 'p':
      if (process_count < MAX_PROCESSES) processes[process_count++].pid = atoi(optarg);
      break;
    default: exit(2);
    }
}

static void print_results(double seconds) {
  printf("{\"seconds\":%.3f,\"ok\":%llu,\"refused\":%llu,\"broken\":%llu,\"cut\":%llu,\"late\":%llu,\"chunks\":%llu",
         seconds, (unsigned long long)seen.ok, (unsigned long long)seen.refused, (unsigned long long)seen.broken,
         (unsigned long long)seen.cut, (unsigned long long)seen.late, (unsigned long long)seen.chunks);
  const struct { const char *name; const histogram *h; } all[] = {
      {"latency", &seen.latency}, {"first", &seen.first}, {"hop", &seen.hop}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    printf(",\"%s\":{\"p50\":%.1f,\"p99\":%.1f}", all[i].name, quantile_us(all[i].h, .5), quantile_us(all[i].h, .99));
  printf(",\"processes\":[");
  for (int i = 0; i < process_count; i++)
    printf("%s{\"cpuSeconds\":%.3f,\"startMb\":%.1f,\"peakMb\":%.1f}", i ? "," : "", processes[i].cpu_s,
           (double)processes[i].start_kb / 1024, (double)processes[i].max_kb / 1024);
  printf("]}\n");
}

int main(int argc, char **argv) {
  read_options(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  make_request();
  epoll_fd = epoll_create1(0);
  connections = calloc((size_t)options.connections, sizeof *connections);
  idle = calloc((size_t)options.connections, sizeof *idle);
  uint64_t started = now = now_ns(), measured_from = started + (uint64_t)options.warm * SECOND_NS, memory_at = now;
  ends_at = measured_from + (uint64_t)options.seconds * SECOND_NS;
  if (options.once) measured_from = started;
  for (int i = 0; i < options.connections; i++) {
    connections[i].fd = -1;
    if (options.rate > 0) idle[idle_count++] = &connections[i];
    else connections[i].due = started + 1 + (uint64_t)(options.stagger_ms * 1e6 * i / options.connections);
  }
  struct epoll_event events[MAX_EVENTS];
  while (now < ends_at && finished < options.connections) {
    if (!measuring && now >= measured_from) {
      measuring = 1;
      measured_from = now;
      for (int i = 0; i < process_count; i++) processes[i].cpu_s = cpu_seconds(processes[i].pid);
    }
    if (now >= memory_at) {
      sample_memory();
      memory_at = now + SECOND_NS / 10;
    }
    uint64_t next = start_due(started);
    now = now_ns();
    uint64_t wait_ns = next > now ? next - now : 0;
    struct timespec wait = {0, (long)wait_ns};
    int n = epoll_pwait2(epoll_fd, events, MAX_EVENTS, &wait, NULL);
    now = now_ns();
    for (int i = 0; i < n; i++) {
      connection *c = events[i].data.ptr;
      if (c->fd >= 0) on_socket(c, events[i].events);
    }
    now = now_ns();
  }
  for (int i = 0; i < process_count; i++) processes[i].cpu_s = cpu_seconds(processes[i].pid) - processes[i].cpu_s;
  print_results((double)(now - measured_from) / 1e9);
  return 0;
}
