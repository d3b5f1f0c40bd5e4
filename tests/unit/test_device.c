/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/nfs/device.c, on a tree of files that looks like sysfs. */
#include "tools/nfs/device.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/runner.h"

static char sys[32];

static void setup(void)
{
	strcpy(sys, "/tmp/device.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(sys));
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *at)
{
	return remove(path);
}

static void teardown(void)
{
	nftw(sys, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* A file of one line, and the directories above it. */
static void put(const char *name, const char *line)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	for (char *p = path + strlen(sys) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "%s\n", line);
	fclose(f);
}

static void put_gid(unsigned port, unsigned index, const char *gid,
		    const char *type)
{
	char name[100];

	snprintf(name, sizeof(name), "infiniband/mlx/ports/%u/gids/%u", port,
		 index);
	put(name, gid);
	snprintf(name, sizeof(name), "infiniband/mlx/ports/%u/gid_attrs/types/"
		 "%u", port, index);
	put(name, type);
}

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };
	struct sockaddr_in *four = (struct sockaddr_in *)&a;

	ck_assert_int_eq(inet_pton(AF_INET, text, &four->sin_addr), 1);
	return a;
}

TEST(the_gid_is_that_of_the_address_and_of_roce_v2)
{
	const struct sockaddr_storage a = address("192.0.2.7");
	const char *mine = "0000:0000:0000:0000:0000:ffff:c000:0207";
	struct device d;

	put("infiniband/mlx/ports/1/state", "1: DOWN");
	put("infiniband/mlx/ports/2/state", "4: ACTIVE");
	put("infiniband/mlx/ports/2/link_layer", "Ethernet");
	put_gid(1, 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2");
	put_gid(2, 0, "fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2");
	put_gid(2, 1, mine, "IB/RoCE v1");
	ck_assert(device_read(sys, "mlx", &a, &d));
	ck_assert_uint_eq(d.port, 2);
	ck_assert_uint_eq(d.index, 1);
	ck_assert_str_eq(d.type, "IB/RoCE v1");
	put_gid(2, 2, mine, "RoCE v2");
	put("infiniband/mlx/ports/2/gid_attrs/ndevs/2", "eth7");
	put("net/eth7/mtu", "4200");
	ck_assert(device_read(sys, "mlx", &a, &d));
	ck_assert_uint_eq(d.index, 2);
	ck_assert_str_eq(d.gid, mine);
	ck_assert_str_eq(d.state, "4: ACTIVE");
	ck_assert_str_eq(d.layer, "Ethernet");
	ck_assert_str_eq(d.netdev, "eth7");
	ck_assert_str_eq(d.mtu, "4200");
}

TEST(without_the_address_it_is_the_first_gid)
{
	const struct sockaddr_storage a = address("192.0.2.7");
	struct device d;

	put("infiniband/mlx/ports/1/state", "4: ACTIVE");
	put_gid(1, 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1");
	ck_assert(device_read(sys, "mlx", &a, &d));
	ck_assert_str_eq(d.type, "");
	ck_assert_uint_eq(d.port, 1);
	ck_assert_uint_eq(d.index, 0);
	ck_assert_str_eq(d.netdev, "");
	ck_assert_str_eq(d.mtu, "");
	ck_assert(!device_read(sys, "other", &a, &d));
	ck_assert(!device_read(sys, "../mlx", &a, &d));
}
