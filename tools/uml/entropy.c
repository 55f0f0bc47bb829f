/*
 * Replacements for functions of the C library that a user-mode Linux kernel calls; this library is
 * loaded before it. tools/uml/build makes it.
 *
 * Random numbers are the same in each run. HOPLINE_ENTROPY has the seed, in hexadecimal. The generator
 * is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Nothing that a host keeps secret may depend on it.
 *
 * Processes that the kernel makes end with it. It stops them to trace them: one that loses it before
 * would remain, stopped, for good.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static uint64_t state;
static int seeded;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

ssize_t getrandom(void *buffer, size_t len, unsigned int flags)
{
	unsigned char *to = buffer;
	size_t left = len;

	(void)flags;
	if (!seeded) {
		const char *seed = getenv("HOPLINE_ENTROPY");

		state = seed ? strtoull(seed, NULL, 16) : 0;
		seeded = 1;
	}
	while (left > 0) {
		uint64_t number = next();
		size_t now = left < sizeof(number) ? left : sizeof(number);

		memcpy(to, &number, now);
		to += now;
		left -= now;
	}
	return (ssize_t)len;
}

/* Lets this process end with `parent`, which may be gone already. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

pid_t fork(void)
{
	pid_t (*original)(void) = dlsym(RTLD_NEXT, "fork");
	pid_t parent = getpid();
	pid_t child = original();

	if (child == 0)
		end_with(parent);
	return child;
}

/* Function of a new process, as its caller wants it. */
struct start {
	int (*function)(void *);
	void *argument;
	pid_t parent;
};

static int begin(void *start)
{
	struct start *given = start;

	end_with(given->parent);
	return given->function(given->argument);
}

/* Linux calls it with four arguments. */
int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	int (*original)(int (*)(void *), void *, int, void *, ...) = dlsym(RTLD_NEXT, "clone");
	/* A process with memory of its own has a copy of it. */
	struct start start = { function, argument, getpid() };

	if (flags & CLONE_VM)
		return original(function, stack, flags, argument);
	return original(begin, stack, flags, &start);
}
