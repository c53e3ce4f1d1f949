/*
 * Makes the disk full for one process and its children while the file named in HOLDFAST_FULL_DISK exists: what would make a regular
 * file longer fails with ENOSPC, and so does every write() to one; all other writes go on. Loaded by LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_full(void) {
  const char *path = getenv("HOLDFAST_FULL_DISK");
  return path != NULL && access(path, F_OK) == 0;
}

/* Whether the disk is full and the file is a regular one that does not reach as far as `end`. */
static int has_no_room(int fd, int64_t end) {
  struct stat found;
  return is_full() && fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && end > (int64_t)found.st_size;
}

static int64_t length_of(const struct iovec *parts, int count) {
  int64_t length = 0;
  for (int n = 0; n < count; n += 1) length += (int64_t)parts[n].iov_len;
  return length;
}

#define REFUSE_BEYOND(fd, end)     \
  if (has_no_room((fd), (end))) {  \
    errno = ENOSPC;                \
    return -1;                     \
  }

ssize_t write(int fd, const void *bytes, size_t count) {
  REFUSE_BEYOND(fd, INT64_MAX);
  return syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  REFUSE_BEYOND(fd, (int64_t)offset + (int64_t)count);
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
  REFUSE_BEYOND(fd, (int64_t)offset + length_of(parts, count));
  return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  if (has_no_room(fd, (int64_t)offset + (int64_t)length)) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno;
}

int posix_fallocate(int fd, off_t offset, off_t length) { return posix_fallocate64(fd, offset, length); }
