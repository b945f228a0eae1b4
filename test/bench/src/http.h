/* What the mock upstream and the load client share of HTTP/1.1. Enough for the bench, not a general parser. */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND_NS 1000000000ull

static inline uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Takes chunked transfer coding off, whatever pieces it comes in. */
typedef struct {
  enum { SIZE, EXTENSION, DATA, DATA_END, TRAILER } state;
  size_t left; /* of the chunk; in TRAILER: the length of the line so far */
  int done, broken;
} dechunker;

typedef void (*payload_fn)(void *context, const char *bytes, size_t length);

static inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Calls `payload` for each run of content. Returns how many bytes were used. */
static inline size_t dechunk(dechunker *d, const char *p, size_t n, payload_fn payload, void *context) {
  size_t i = 0;
  while (i < n && !d->done && !d->broken) {
    switch (d->state) {
    case SIZE: {
      char c = p[i++];
      if (hex_value(c) >= 0) d->left = d->left * 16 + (size_t)hex_value(c);
      else if (c == ';' || c == '\r' || c == ' ') d->state = EXTENSION;
      else d->broken = 1;
      break;
    }
    case EXTENSION:
      if (p[i++] == '\n') d->state = d->left ? DATA : TRAILER;
      break;
    case DATA: {
      size_t run = n - i < d->left ? n - i : d->left;
      payload(context, p + i, run);
      i += run;
      d->left -= run;
      if (!d->left) d->state = DATA_END;
      break;
    }
    case DATA_END:
      if (p[i++] == '\n') d->state = SIZE;
      break;
    case TRAILER:
      if (p[i] == '\n') {
        if (!d->left) d->done = 1;
        d->left = 0;
      } else if (p[i] != '\r') d->left++;
      i++;
      break;
    }
  }
  return i;
}

/* The value of a header in a block of headers, or NULL. */
static inline const char *find_header(const char *block, size_t length, const char *name, size_t *value_length) {
  size_t name_length = strlen(name);
  const char *p = block, *end = block + length;
  while (p < end) {
    const char *line_end = memchr(p, '\n', (size_t)(end - p));
    if (!line_end) line_end = end;
    if ((size_t)(line_end - p) > name_length && p[name_length] == ':' && !strncasecmp(p, name, name_length)) {
      const char *from = p + name_length + 1, *to = line_end;
      while (from < to && (*from == ' ' || *from == '\t')) from++;
      while (to > from && (to[-1] == '\r' || to[-1] == ' ')) to--;
      *value_length = (size_t)(to - from);
      return from;
    }
    p = line_end + 1;
  }
  return NULL;
}
#endif
