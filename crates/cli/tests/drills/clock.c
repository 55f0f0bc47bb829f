/* Preloaded library that adds the seconds at the start of the file CLOCK to the wall clock. The file is mapped when the
   program begins, so that it can change at any time, and works in a program that may open no more files. Monotonic clocks
   are not changed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		offset = map;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, clock, now);
	if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return result;
}

time_t time(time_t *when)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (when)
		*when = now.tv_sec;
	return now.tv_sec;
}
