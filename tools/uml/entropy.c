/*
 * Random numbers for a user-mode Linux kernel that are the same in each run. The kernel asks the
 * C library for them; this library is loaded before it. tools/uml/build makes it.
 *
 * HOPLINE_ENTROPY has the seed, in hexadecimal. The generator is SplitMix64 (Steele, Lea and Flood,
 * OOPSLA 2014). Nothing that a host keeps secret may depend on it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

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
