/*
 * Makes it possible to take back what a process wrote to files and did not sync, as a power cut would. Before each change of a
 * regular file, the bytes that it overwrites and the size that it may alter go to the journal named in HOLDFAST_POWER; each sync
 * leaves one record when it begins and one when it is done. power-cut.ts reads the journal after the process was killed.
 * Loaded by LD_PRELOAD; 64-bit Linux. No sync reaches the disk, which is not what is tested; with HOLDFAST_POWER_DISK=lying a
 * sync is also never recorded as done. Not seen, and so taken for durable: what stdio and mmap write, names (create, rename, unlink).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CHANGE = 1, SYNC_BEGIN = 2, SYNC_DONE = 3 };

struct record {
  uint32_t kind;
  uint32_t saved; /* bytes that follow: what the change overwrites */
  uint64_t device, inode;
  uint64_t born; /* nanoseconds; an inode number may be used again */
  uint64_t offset, size_before, length;
  uint64_t sync; /* the same in both records of a sync */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigset_t mask_before; /* of the thread that has the lock */
static int journal = -1;
static int is_lying;
static uint64_t syncs;

/* Several processes may write to one file, such as those of PostgreSQL; a killed one loses this lock. */
static void lock_journal(short type) {
  struct flock all = {.l_type = type, .l_whence = SEEK_SET};
  while (fcntl(journal, F_SETLKW, &all) != 0 && errno == EINTR) {
  }
}

/* No signal in between: its handler may write too. */
static void hold(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_mutex_lock(&lock);
  lock_journal(F_WRLCK);
  mask_before = before;
}

static void release(void) {
  sigset_t before = mask_before;
  int error = errno;
  lock_journal(F_UNLCK);
  pthread_mutex_unlock(&lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
}

static int is_file(int fd) {
  struct stat about;
  return journal >= 0 && fd != journal && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("HOLDFAST_POWER"), *disk = getenv("HOLDFAST_POWER_DISK");
  is_lying = disk != NULL && strcmp(disk, "lying") == 0;
  int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  /* Out of the way of programs that expect low numbers. */
  journal = fcntl(fd, F_DUPFD_CLOEXEC, 500);
  close(fd);
  /* A child must not inherit the lock from a thread that it does not have. */
  pthread_atfork(hold, release, release);
}

/* True when changes of this file are to be recorded. */
static int describe(int fd, struct record *record, uint64_t *size) {
  struct statx about;
  if (journal < 0 || fd == journal) return 0;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &about) != 0 || !S_ISREG(about.stx_mode)) return 0;
  struct stat plain;
  if (fstat(fd, &plain) != 0) return 0;
  memset(record, 0, sizeof *record);
  record->device = plain.st_dev;
  record->inode = plain.st_ino;
  if (about.stx_mask & STATX_BTIME) record->born = (uint64_t)about.stx_btime.tv_sec * 1000000000u + about.stx_btime.tv_nsec;
  *size = about.stx_size;
  return 1;
}

static void put(const struct record *record, void *saved) {
  struct iovec parts[2] = {{(void *)record, sizeof *record}, {saved, record->saved}};
  /* A journal with holes would give wrong results: better none. */
  if (syscall(SYS_writev, journal, parts, 2) != (long)(sizeof *record + record->saved)) abort();
}

static size_t read_at(int fd, void *into, size_t length, uint64_t offset) {
  ssize_t got = syscall(SYS_pread64, fd, into, length, offset);
  if (got >= 0) return (size_t)got;
  char self[40]; /* It may be open for writing only. */
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  int again = open(self, O_RDONLY | O_CLOEXEC);
  if (again < 0) return 0;
  got = syscall(SYS_pread64, again, into, length, offset);
  close(again);
  return got < 0 ? 0 : (size_t)got;
}

/* Records a change of `length` bytes at `offset` (negative: where this descriptor writes next). Called under the lock. */
static void before_change(int fd, int64_t offset, uint64_t length) {
  struct record record;
  uint64_t size;
  if (!describe(fd, &record, &size)) return;
  if (offset < 0) {
    int is_append = fcntl(fd, F_GETFL) & O_APPEND;
    offset = is_append ? (int64_t)size : lseek(fd, 0, SEEK_CUR);
  }
  record.kind = CHANGE;
  record.offset = (uint64_t)offset;
  record.size_before = size;
  record.length = length;
  uint64_t overwritten = record.offset < size ? size - record.offset : 0;
  if (overwritten > length) overwritten = length;
  void *saved = overwritten == 0 ? NULL : malloc(overwritten);
  if (saved != NULL) record.saved = (uint32_t)read_at(fd, saved, overwritten, record.offset);
  put(&record, saved);
  free(saved);
}

static uint64_t length_of(const struct iovec *parts, int count) {
  uint64_t length = 0;
  for (int n = 0; n < count; n++) length += parts[n].iov_len;
  return length;
}

/* The record and the change are one step for a sync in another thread or process: it covers both or neither. */
#define CHANGING(fd, offset, length, call) \
  if (!is_file(fd)) return call;           \
  hold();                                  \
  before_change(fd, offset, length);       \
  long result = call;                      \
  release();                               \
  return result

ssize_t write(int fd, const void *from, size_t length) { CHANGING(fd, -1, length, syscall(SYS_write, fd, from, length)); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
  CHANGING(fd, -1, length_of(parts, count), syscall(SYS_writev, fd, parts, count));
}

ssize_t pwrite64(int fd, const void *from, size_t length, off64_t offset) {
  CHANGING(fd, offset, length, syscall(SYS_pwrite64, fd, from, length, offset));
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t offset) { return pwrite64(fd, from, length, offset); }

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  CHANGING(fd, offset, length_of(parts, count), syscall(SYS_pwritev, fd, parts, count, offset, 0));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return pwritev64(fd, parts, count, offset); }

static uint64_t size_of(int fd) {
  struct stat about;
  return fstat(fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

int ftruncate64(int fd, off64_t size) {
  uint64_t now = journal < 0 ? 0 : size_of(fd), low = now < (uint64_t)size ? now : (uint64_t)size;
  CHANGING(fd, (int64_t)low, (now > (uint64_t)size ? now : (uint64_t)size) - low, (int)syscall(SYS_ftruncate, fd, size));
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  CHANGING(fd, offset, 0, syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno);
}

int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }

static int synchronize(int fd, long number) {
  struct record record;
  uint64_t size;
  if (!describe(fd, &record, &size)) return (int)syscall(number, fd);
  hold();
  record.kind = SYNC_BEGIN;
  record.sync = ((uint64_t)getpid() << 32) | ++syncs;
  put(&record, NULL);
  release();
  if (is_lying) return 0;
  hold();
  record.kind = SYNC_DONE;
  put(&record, NULL);
  release();
  return 0;
}

int fsync(int fd) { return synchronize(fd, SYS_fsync); }

int fdatasync(int fd) { return synchronize(fd, SYS_fdatasync); }
