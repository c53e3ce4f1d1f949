/*
 * Shifts the wall clock of one process by a number of microseconds that another process may change at any time: the first eight
 * bytes of the file named in HOLDFAST_CLOCK, mapped into memory. Where the next eight are not zero, the wall clock stands still at
 * that number of microseconds. The monotonic clock and everything timed by it stay as they are.
 * Loaded by LD_PRELOAD. The real time comes by a plain system call, because looking up the next clock_gettime would allocate
 * memory, and allocators ask for the time while they are being set up.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NANOS 1000000000LL

struct settings {
  int64_t shift_micros;
  int64_t frozen_micros;
};

static const struct settings none;
static const volatile struct settings *_Atomic settings;

static const volatile struct settings *read_settings(void) {
  const volatile struct settings *found = settings;
  if (found != NULL) return found;
  found = &none;
  const char *path = getenv("HOLDFAST_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    void *mapped = mmap(NULL, sizeof(struct settings), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) found = mapped;
    close(fd);
  }
  settings = found;
  return found;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  int failed = (int)syscall(SYS_clock_gettime, clock, out);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  const volatile struct settings *set = read_settings();
  int64_t frozen = set->frozen_micros;
  int64_t nanos = frozen != 0 ? frozen * 1000 : (int64_t)out->tv_sec * NANOS + out->tv_nsec + set->shift_micros * 1000;
  out->tv_sec = nanos / NANOS;
  out->tv_nsec = nanos % NANOS;
  return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
