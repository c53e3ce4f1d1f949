/*
 * Makes the disk full for one process while the file named in HOLDFAST_FULL_DISK exists: writes to regular files fail with ENOSPC,
 * all other writes go on. Loaded by LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *bytes, size_t count) {
  const char *path = getenv("HOLDFAST_FULL_DISK");
  struct stat found;
  if (path != NULL && access(path, F_OK) == 0 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, fd, bytes, count);
}
