/* What the load client measures with: a histogram, and the CPU time and memory of processes. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_PROCESSES 16

/* Log-linear histogram of nanoseconds, 1/512 exact. */
#define SUB 9
typedef struct { uint64_t counts[(64 - SUB) << SUB], n; } histogram;

static void add(histogram *h, uint64_t v) {
  int e = v < (1ull << SUB) ? -1 : 63 - __builtin_clzll(v) - SUB;
  h->counts[e < 0 ? v : ((size_t)(e + 1) << SUB) + ((v >> e) & ((1u << SUB) - 1))]++;
  h->n++;
}

static double quantile_us(const histogram *h, double q) {
  uint64_t wanted = (uint64_t)(q * (double)h->n), seen = 0;
  for (size_t i = 0; h->n && i < sizeof h->counts / sizeof *h->counts; i++) {
    if ((seen += h->counts[i]) <= wanted && seen < h->n) continue;
    if (i < (1u << SUB)) return (double)i / 1e3;
    int e = (int)(i >> SUB) - 1;
    return (double)(((1ull << SUB) | (i & ((1u << SUB) - 1))) << e) / 1e3;
  }
  return 0;
}

static struct process { int pid; double cpu_s; long start_kb, max_kb; } processes[MAX_PROCESSES];
static int process_count;

static double cpu_seconds(int pid) {
  char name[64], text[1024];
  unsigned long user, system;
  sprintf(name, "/proc/%d/stat", pid);
  FILE *f = fopen(name, "r");
  if (!f) return 0;
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  char *p = strrchr(text, ')');
  if (!p || sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) return 0;
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static long resident_kb(int pid) {
  char name[64], line[256];
  long kb = 0;
  sprintf(name, "/proc/%d/status", pid);
  FILE *f = fopen(name, "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %ld", &kb);
  if (f) fclose(f);
  return kb;
}

static void sample_memory(void) {
  for (struct process *p = processes; p < processes + process_count; p++) {
    long kb = resident_kb(p->pid);
    if (!p->start_kb) p->start_kb = kb;
    if (kb > p->max_kb) p->max_kb = kb;
  }
}
#endif
