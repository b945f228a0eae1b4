/* mock: an upstream that costs next to nothing. One thread, epoll, no allocation on its hot path.
 *
 *   mock                 prints the port that it took on the loopback, then serves until it is killed
 *
 * Any POST is a chat completion: JSON of about 1.1 KB, or an event stream if the body has "stream":true, with the usage
 * chunk if it has "include_usage":true. A directive anywhere in the first or last 4 KB of the body steers the stream, so
 * that it survives any gateway:
 *
 *   @mock{c=200,d=5}     200 content chunks, 5 ms apart (0: as fast as they go)
 *
 * Each content chunk carries "@T" and 16 digits: CLOCK_MONOTONIC in nanoseconds when it was written, so that a client on
 * the same machine can tell the transit time of each one.
 */
#include "http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT 4096           /* bytes of a body's start and end that are looked at */
#define TICK_NS 200000ull   /* resolution of the timers */
#define SLOTS 32768         /* of the timer wheel: 6.5 s; a longer delay goes round more than once */
#define EVENT_MAX 1024
#define BURST 32            /* events that one stream writes before others get their turn */
#define MAX_EVENTS 512

enum state { HEAD, BODY, CHUNKED_BODY, STREAMING, FLUSHING };
enum phase { ROLE, CONTENT, FINISH, USAGE, DONE, END };

typedef struct connection {
  int fd, dead, close_after, wants_output, slot;
  enum state state;
  enum phase phase;
  struct connection *next, **link; /* in a slot of the timer wheel */
  uint64_t due;
  char headers[2 * KEPT], first[KEPT], last[KEPT];
  size_t headers_length, first_length, last_length, body_left;
  dechunker dechunker;
  int usage, chunks, sent;
  uint64_t delay_ns;
  char *output; /* what the socket did not take yet */
  size_t output_length, output_sent, output_room;
} connection;

static int epoll_fd;
static connection *wheel[SLOTS];
static uint64_t first_tick_ns, tick;
static char json_answer[2048];
static size_t json_answer_length;

static void timer_remove(connection *c) {
  if (c->slot < 0) return;
  *c->link = c->next;
  if (c->next) c->next->link = c->link;
  c->slot = -1;
}

static void timer_set(connection *c, uint64_t due) {
  timer_remove(c);
  uint64_t at = (due - first_tick_ns + TICK_NS - 1) / TICK_NS;
  if (at <= tick) at = tick + 1;
  c->due = due;
  c->slot = (int)(at % SLOTS);
  c->next = wheel[c->slot];
  if (c->next) c->next->link = &c->next;
  c->link = &wheel[c->slot];
  wheel[c->slot] = c;
}

static void end(connection *c) {
  if (c->dead) return;
  timer_remove(c);
  close(c->fd);
  c->dead = 1;
}

static void want_output(connection *c, int on) {
  if (c->wants_output == on) return;
  c->wants_output = on;
  struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | (on ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static int pending(connection *c) { return c->output_sent < c->output_length; }

/* Writes, and keeps what the socket does not take. */
static void put(connection *c, const char *p, size_t n) {
  if (!pending(c)) {
    ssize_t written = send(c->fd, p, n, MSG_NOSIGNAL);
    if (written == (ssize_t)n) return;
    if (written < 0 && errno != EAGAIN) return end(c);
    if (written < 0) written = 0;
    p += written;
    n -= (size_t)written;
    c->output_length = c->output_sent = 0;
  }
  if (c->output_length + n > c->output_room) {
    c->output_room = c->output_length + n + KEPT;
    c->output = realloc(c->output, c->output_room);
  }
  memcpy(c->output + c->output_length, p, n);
  c->output_length += n;
  want_output(c, 1);
}

static void flush(connection *c) {
  while (pending(c)) {
    ssize_t written = send(c->fd, c->output + c->output_sent, c->output_length - c->output_sent, MSG_NOSIGNAL);
    if (written < 0) {
      if (errno != EAGAIN) end(c);
      return;
    }
    c->output_sent += (size_t)written;
  }
  c->output_length = c->output_sent = 0;
  want_output(c, 0);
}

static void answered(connection *c) {
  c->state = FLUSHING;
  if (c->dead || pending(c)) return;
  if (c->close_after) end(c);
  c->state = HEAD;
  c->headers_length = 0;
}

static void answer_json(connection *c) {
  char answer[4096];
  int n = snprintf(answer, sizeof answer,
                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
                   json_answer_length, c->close_after ? "Connection: close\r\n" : "", json_answer);
  put(c, answer, (size_t)n);
  answered(c);
}

#define EVENT_HEAD                                                                                              \
  "data: {\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"                \
  "\"model\":\"mock-model\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_mock\","
#define CHOICE(delta, finish)                                                                                   \
  "\"choices\":[{\"index\":0,\"delta\":{" delta "},\"logprobs\":null,\"finish_reason\":" finish "}]%s}\n\n"

/* Writes the stream's next event to `o` and goes to its next phase. */
static int event(connection *c, char *o) {
  const char *no_usage = c->usage ? ",\"usage\":null" : "";
  switch (c->phase) {
  case ROLE:
    c->phase = c->chunks ? CONTENT : FINISH;
    return sprintf(o, EVENT_HEAD CHOICE("\"role\":\"assistant\",\"content\":\"\",\"refusal\":null", "null"), no_usage);
  case CONTENT:
    if (++c->sent >= c->chunks) c->phase = FINISH;
    return sprintf(o, EVENT_HEAD CHOICE("\"content\":\" @T%016llu\"", "null"), (unsigned long long)now_ns(), no_usage);
  case FINISH:
    c->phase = c->usage ? USAGE : DONE;
    return sprintf(o, EVENT_HEAD CHOICE("", "\"stop\""), no_usage);
  case USAGE:
    c->phase = DONE;
    return sprintf(o,
                   EVENT_HEAD "\"choices\":[],\"usage\":{\"prompt_tokens\":17,\"completion_tokens\":%d,\"total_tokens\":%d,"
                              "\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},"
                              "\"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0}}}\n\n",
                   c->chunks, c->chunks + 17);
  default:
    c->phase = END;
    return sprintf(o, "data: [DONE]\n\n");
  }
}

/* Writes events until a delay, a full socket or the end. */
static void stream_on(connection *c) {
  char text[EVENT_MAX], framed[EVENT_MAX + 16];
  for (int written = 1; !c->dead && !pending(c); written++) {
    if (c->phase == END) {
      put(c, "0\r\n\r\n", 5);
      return answered(c);
    }
    int n = event(c, text);
    n = sprintf(framed, "%x\r\n%.*s\r\n", (unsigned)n, n, text);
    put(c, framed, (size_t)n);
    if (c->dead) return;
    if (c->delay_ns && c->phase == CONTENT && c->sent) {
      uint64_t now = now_ns(), due = c->due + c->delay_ns;
      /* Far behind a slow reader: no burst to catch up. */
      return timer_set(c, due + SECOND_NS / 20 < now ? now : due);
    }
    if (!c->delay_ns && written == BURST) return timer_set(c, now_ns());
  }
}

static const char *find(connection *c, const char *text) {
  const char *at = memmem(c->first, c->first_length, text, strlen(text));
  return at ? at : memmem(c->last, c->last_length, text, strlen(text));
}

static void got_request(connection *c) {
  c->usage = find(c, "\"include_usage\":true") != NULL;
  if (!find(c, "\"stream\":true")) return answer_json(c);
  const char *directive = find(c, "@mock{");
  int chunks = 20, delay_ms = 0;
  if (directive) sscanf(directive, "@mock{c=%d,d=%d", &chunks, &delay_ms);
  c->chunks = chunks;
  c->delay_ns = (uint64_t)delay_ms * 1000000;
  c->sent = 0;
  c->phase = ROLE;
  c->state = STREAMING;
  char head[512];
  int n = snprintf(head, sizeof head,
                   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
                   "Transfer-Encoding: chunked\r\n%s\r\n",
                   c->close_after ? "Connection: close\r\n" : "");
  put(c, head, (size_t)n);
  c->due = now_ns();
  stream_on(c);
}

/* Keeps a body's first and last bytes. */
static void keep(void *context, const char *p, size_t n) {
  connection *c = context;
  size_t room = KEPT - c->first_length, head = n < room ? n : room;
  memcpy(c->first + c->first_length, p, head);
  c->first_length += head;
  p += head;
  n -= head;
  if (n >= KEPT) {
    memcpy(c->last, p + n - KEPT, KEPT);
    c->last_length = KEPT;
    return;
  }
  size_t over = c->last_length + n > KEPT ? c->last_length + n - KEPT : 0;
  memmove(c->last, c->last + over, c->last_length - over);
  memcpy(c->last + c->last_length - over, p, n);
  c->last_length += n - over;
}

/* Returns how many of the bytes belonged to the headers. */
static size_t read_headers(connection *c, const char *p, size_t n) {
  size_t before = c->headers_length, room = sizeof c->headers - before, taken = n < room ? n : room;
  memcpy(c->headers + before, p, taken);
  c->headers_length += taken;
  char *blank = memmem(c->headers, c->headers_length, "\r\n\r\n", 4);
  if (!blank) {
    if (c->headers_length == sizeof c->headers) end(c);
    return n;
  }
  size_t length = (size_t)(blank - c->headers) + 4, value_length;
  const char *value = find_header(c->headers, length, "connection", &value_length);
  c->close_after = value && value_length == 5 && !strncasecmp(value, "close", 5);
  c->first_length = c->last_length = 0;
  if (find_header(c->headers, length, "transfer-encoding", &value_length)) {
    memset(&c->dechunker, 0, sizeof c->dechunker);
    c->state = CHUNKED_BODY;
  } else {
    value = find_header(c->headers, length, "content-length", &value_length);
    c->body_left = value ? strtoull(value, NULL, 10) : 0;
    c->state = BODY;
    if (!c->body_left) got_request(c);
  }
  return length - before;
}

static void feed(connection *c, const char *p, size_t n) {
  while (n && !c->dead) {
    size_t used = n;
    if (c->state == HEAD) {
      used = read_headers(c, p, n);
    } else if (c->state == BODY) {
      used = n < c->body_left ? n : c->body_left;
      keep(c, p, used);
      c->body_left -= used;
      if (!c->body_left) got_request(c);
    } else if (c->state == CHUNKED_BODY) {
      used = dechunk(&c->dechunker, p, n, keep, c);
      if (c->dechunker.broken) end(c);
      else if (c->dechunker.done) got_request(c);
    } else {
      return; /* bytes during an answer: no pipelining here */
    }
    p += used;
    n -= used;
  }
}

static void accept_all(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->slot = -1;
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
  }
}

static void on_socket(connection *c, uint32_t events) {
  static char buffer[256 * 1024];
  if (events & (EPOLLERR | EPOLLHUP)) end(c);
  while (!c->dead && events & (EPOLLIN | EPOLLRDHUP)) {
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n > 0) feed(c, buffer, (size_t)n);
    else if (n == 0 || errno != EAGAIN) end(c);
    if (n < (ssize_t)sizeof buffer) break;
  }
  if (c->dead || !(events & EPOLLOUT)) return;
  flush(c);
  if (c->dead || pending(c)) return;
  if (c->state == STREAMING && c->slot < 0) stream_on(c);
  else if (c->state == FLUSHING) answered(c);
}

static void discard(connection *c) {
  free(c->output);
  free(c);
}

static void run_timers(void) {
  uint64_t now = (now_ns() - first_tick_ns) / TICK_NS;
  while (tick < now) {
    tick++;
    connection *c, *later = NULL;
    while ((c = wheel[tick % SLOTS])) {
      timer_remove(c);
      if (c->due > first_tick_ns + tick * TICK_NS) { /* another round of the wheel */
        c->next = later;
        later = c;
        continue;
      }
      stream_on(c);
      if (c->dead) discard(c);
    }
    for (; (c = later); timer_set(c, c->due)) later = c->next;
  }
}

static struct timespec until_next_timer(void) {
  for (uint64_t t = tick + 1; t < tick + SECOND_NS / 10 / TICK_NS; t++) {
    if (!wheel[t % SLOTS]) continue;
    uint64_t at = first_tick_ns + t * TICK_NS, now = now_ns();
    return (struct timespec){0, at > now ? (long)(at - now) : 0};
  }
  return (struct timespec){0, (long)(SECOND_NS / 10)};
}

static void make_json_answer(void) {
  char content[701];
  for (int i = 0; i < 700; i++) content[i] = "the quick brown fox jumps over a lazy dog "[i % 42];
  content[700] = 0;
  json_answer_length = (size_t)snprintf(
      json_answer, sizeof json_answer,
      "{\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"mock-model\","
      "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\",\"refusal\":null},"
      "\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":17,\"completion_tokens\":150,"
      "\"total_tokens\":167,\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0}},"
      "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_mock\"}",
      content);
}

static int listen_on_loopback(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, length) || listen(fd, 8192) ||
      getsockname(fd, (struct sockaddr *)&address, &length)) {
    perror("mock");
    exit(1);
  }
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  make_json_answer();
  int listener = listen_on_loopback();
  epoll_fd = epoll_create1(0);
  struct epoll_event events[MAX_EVENTS], e = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
  first_tick_ns = now_ns();
  for (;;) {
    struct timespec wait = until_next_timer();
    int n = epoll_pwait2(epoll_fd, events, MAX_EVENTS, &wait, NULL);
    for (int i = 0; i < n; i++) {
      connection *c = events[i].data.ptr;
      if (!c) accept_all(listener);
      else on_socket(c, events[i].events);
      if (c && c->dead) discard(c);
    }
    run_timers();
  }
}
