/*
 * Shifts the wall clock of one process by a number of microseconds that another process may change at any time: the first eight
 * bytes of the file named in HOLDFAST_CLOCK, mapped into memory. Where the next eight are not zero, the wall clock stands still at
 * that number of microseconds. The monotonic clock and everything timed by it stay as they are.
 * PostgreSQL has no other clock for its timeouts (of statements, locks, deadlocks, logins): it adds to the wall clock, sets a real
 * timer, and looks at the wall clock again when the timer fires. So while that handler runs, the time is the one told last plus the
 * real time since then: a clock that stands still or jumps neither holds a timeout back for ever nor fires it early.
 * Loaded by LD_PRELOAD. The real time comes by a plain system call, because looking up the next clock_gettime would allocate
 * memory, and allocators ask for the time while they are being set up.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
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

struct telling {
  int64_t real, told;
};

/* The last time that was told, and the place for the next one, since an alarm may come between the two numbers. */
static volatile struct telling tellings[2];
static volatile sig_atomic_t last_telling, has_alarm_handler, is_in_alarm;

static int64_t tell(int64_t real) {
  const volatile struct telling *last = &tellings[last_telling];
  if (is_in_alarm) return last->told + (real - last->real);
  const volatile struct settings *set = read_settings();
  int64_t frozen = set->frozen_micros;
  int64_t told = frozen != 0 ? frozen * 1000 : real + set->shift_micros * 1000;
  if (has_alarm_handler) {
    volatile struct telling *next = &tellings[!last_telling];
    next->real = real;
    next->told = told;
    last_telling = !last_telling;
  }
  return told;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  int failed = (int)syscall(SYS_clock_gettime, clock, out);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t nanos = tell((int64_t)out->tv_sec * NANOS + out->tv_nsec);
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

static void (*alarm_handler)(int);

static void on_alarm(int number) {
  is_in_alarm = 1;
  alarm_handler(number);
  is_in_alarm = 0;
}

int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
  if (number != SIGALRM) return next(number, action, before);
  void (*handler_before)(int) = alarm_handler;
  struct sigaction ours;
  if (action != NULL) {
    ours = *action;
    int is_plain = !(ours.sa_flags & SA_SIGINFO) && ours.sa_handler != SIG_DFL && ours.sa_handler != SIG_IGN;
    if (is_plain) {
      alarm_handler = ours.sa_handler;
      ours.sa_handler = on_alarm;
    }
    has_alarm_handler = is_plain;
  }
  int failed = next(number, action == NULL ? NULL : &ours, before);
  if (!failed && before != NULL && before->sa_handler == on_alarm) before->sa_handler = handler_before;
  return failed;
}
