/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client library with memory of another device, on fake RDMA devices.  A
 * memfd is the dma-buf.  At the addresses by which calls name it nothing can be
 * read or written, so a CPU that touches it crashes.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/rpcrdma/client.h"
#include "tests/fake/verbs_fake.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"
#include "transport/fabric/verbs/verbs.h"

/* The region begins at SKIP of the dma-buf. */
enum { BYTES = 1 << 17, SKIP = 2 * 4096 + 24, LEN = 70000 };

static const struct rig_fabric on_verbs = { verbs_fabric_create,
					    verbs_fabric_destroy };
static struct rig rig;
static struct gannet_rpcrdma *c;
static struct gannet_rpcrdma_region *region;
static uint8_t *name;		/* the addresses: of the whole dma-buf */
static uint8_t *bytes;		/* and its bytes, as its device has them */
static int dmabuf_fd;

static void make_dmabuf(void)
{
	dmabuf_fd = memfd_create("dma-buf", MFD_CLOEXEC);
	ck_assert_int_ge(dmabuf_fd, 0);
	ck_assert_int_eq(ftruncate(dmabuf_fd, BYTES), 0);
	bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     dmabuf_fd, 0);
	name = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	ck_assert(bytes != MAP_FAILED && name != MAP_FAILED);
}

static void connect_client(struct gannet_rpcrdma_options *o)
{
	static struct gannet_rpcrdma_options defaults;

	o = o ? o : &defaults;
	o->size = sizeof(*o);
	o->credits = 16;		/* the fake's queues are short */
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, o, &c), 0);
}

static void open_on_verbs(struct gannet_rpcrdma_options *o, bool has_windows)
{
	static const struct rig_options ro = {
		.rdma = { .credits = 16, .send_queue = 128 }, .async = true };

	fake_init();
	if (has_windows)
		fake.attr.device_cap_flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	fake_wire_start();
	rig_fabric = &on_verbs;
	rig_open(&rig, &ro);
	connect_client(o);
	make_dmabuf();
}

static void close_on_verbs(void)
{
	gannet_rpcrdma_close(c);
	rig_release(&rig);
	rig_close(&rig);
	fake_wire_stop();
	rig_fabric = NULL;
	ck_assert_uint_eq(fake.objects, 0);
	ck_assert_uint_eq(fake.mrs, 0);
	munmap(bytes, BYTES);
	munmap(name, BYTES);
	close(dmabuf_fd);
}

static struct gannet_rpcrdma_dmabuf whole(void)
{
	return (struct gannet_rpcrdma_dmabuf){
		.size = sizeof(struct gannet_rpcrdma_dmabuf), .fd = dmabuf_fd,
		.offset = SKIP, .len = LEN, .addr = name + SKIP,
		.use = GANNET_RPCRDMA_SOURCE | GANNET_RPCRDMA_SINK,
	};
}

static int register_it(void)
{
	const struct gannet_rpcrdma_dmabuf d = whole();

	return gannet_rpcrdma_register_dmabuf(c, &d, &region);
}

/* Of the region. */
static struct gannet_rpcrdma_memory part(uint32_t from, uint32_t len)
{
	return (struct gannet_rpcrdma_memory){
		.addr = name + SKIP + from, .len = len, .region = region };
}

static void prepare_read(struct one *o, struct gannet_rpcrdma_memory to)
{
	one_init(o, c, OP_READ, to.len);
	o->call.nsinks = 1;
	o->call.sink[0] = to;
}

/* Reads into the part; the call's status. */
static int read_to(uint32_t from, uint32_t len)
{
	struct one o;
	int err;

	memset(bytes, 0x55, BYTES);
	prepare_read(&o, part(from, len));
	one_start(&o, c);
	err = one_wait(&o);
	if (err < 0)
		return err;
	ck_assert_uint_eq(o.call.written[0], len);
	for (uint32_t i = 0; i < len; i++)
		ck_assert_uint_eq(bytes[SKIP + from + i], pattern(i));
	ck_assert_uint_eq(bytes[SKIP + from - 1], 0x55);
	ck_assert_uint_eq(bytes[SKIP + from + len], 0x55);
	return 0;
}

/* Sends the memory, and checks the sum that the responder made. */
static void send_from(struct gannet_rpcrdma_memory mem, uint32_t sum)
{
	struct one o;

	one_init(&o, c, OP_SUM, 1);
	o.words[3] = htonl(mem.len);
	o.call.msg_len = DATA_POSITION;
	o.call.nsources = 1;
	o.call.source[0].position = DATA_POSITION;
	o.call.source[0].mem = mem;
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(ntohl(o.reply[1]), mem.len);
	ck_assert_uint_eq(ntohl(o.reply[2]), sum);
}

static void sum_of(uint32_t from, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += bytes[SKIP + from + i];
	send_from(part(from, len), sum);
}

static unsigned registrations(void)
{
	unsigned n;

	mutex_lock(&fake.lock);
	n = fake.mrs;
	mutex_unlock(&fake.lock);
	return n;
}

/* The fake's threads read it. */
static void set(int *it, int value)
{
	mutex_lock(&fake.lock);
	*it = value;
	mutex_unlock(&fake.lock);
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static bool held(void *arg)
{
	return rig_held(&rig) > 0;
}

TEST_CASE(.timeout = 30);

/* ---- calls */

static const struct {
	unsigned registration;
	bool	 has_windows;
	bool	 longer;	/* one registration for all calls */
} ways[] = {
	{ GANNET_RPCRDMA_EACH_CALL, false, true },
	{ GANNET_RPCRDMA_CACHE, false, true },
	{ GANNET_RPCRDMA_WINDOWS, true, false },
	{ GANNET_RPCRDMA_WINDOWS, false, false },
};

TEST_LOOP(a_dma_buf_is_read_and_filled_by_devices_alone, 0, ARRAY_SIZE(ways))
{
	struct gannet_rpcrdma_options o = {
		.registration = ways[_i].registration };
	unsigned before;

	open_on_verbs(&o, ways[_i].has_windows);
	before = registrations();
	ck_assert_int_eq(register_it(), 0);
	/* The library has its own. */
	ck_assert_int_ne(fake.dmabuf.fd, dmabuf_fd);
	ck_assert_uint_eq(registrations() - before, ways[_i].longer);
	for (uint32_t i = 1; i < 6; i++) {
		ck_assert_int_eq(read_to(i * 1001, 12345), 0);
		sum_of(0, LEN);
		sum_of(i, 3);
		ck_assert_uint_eq(registrations() - before, ways[_i].longer);
	}
	ck_assert_uint_eq(fake.dmabufs, ways[_i].longer ? 1 : 1 + 15);
	ck_assert_uint_eq(fake.windows, 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	ck_assert_uint_eq(registrations(), before);
	close_on_verbs();
}

TEST(a_device_is_told_where_a_region_lies_in_its_dma_buf)
{
	const int both = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	open_on_verbs(NULL, false);
	ck_assert_int_eq(register_it(), 0);
	ck_assert_uint_eq(fake.dmabuf.offset, SKIP);
	ck_assert_uint_eq(fake.dmabuf.len, LEN);
	ck_assert_uint_eq(fake.dmabuf.iova, (uintptr_t)name + SKIP);
	ck_assert_int_eq(fake.dmabuf.access, both | IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_RELAXED_ORDERING);
	close_on_verbs();
}

TEST(a_call_with_a_handle_of_its_own_tells_where_its_part_lies)
{
	struct gannet_rpcrdma_options o = {
		.registration = GANNET_RPCRDMA_WINDOWS };

	open_on_verbs(&o, true);
	ck_assert_int_eq(register_it(), 0);
	/* To ask the device needs no peer. */
	ck_assert_int_eq(fake.dmabuf.access, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_RELAXED_ORDERING);
	ck_assert_int_eq(read_to(5001, 600), 0);
	ck_assert_uint_eq(fake.dmabuf.offset, SKIP + 5001);
	ck_assert_uint_eq(fake.dmabuf.len, 600);
	ck_assert_uint_eq(fake.dmabuf.iova, (uintptr_t)name + SKIP + 5001);
	ck_assert_int_eq(fake.dmabuf.access & IBV_ACCESS_REMOTE_READ, 0);
	close_on_verbs();
}

TEST(relaxed_ordering_is_not_insisted_on)
{
	open_on_verbs(NULL, false);
	fake.no_relaxed = true;
	ck_assert_int_eq(register_it(), 0);
	ck_assert_int_eq(read_to(1, LEN - 2), 0);
	close_on_verbs();
}

TEST(a_caller_may_close_its_descriptor)
{
	struct gannet_rpcrdma_dmabuf d;
	unsigned before;

	open_on_verbs(NULL, false);
	before = descriptors();
	d = whole();
	d.fd = dup(dmabuf_fd);
	ck_assert_int_eq(gannet_rpcrdma_register_dmabuf(c, &d, &region), 0);
	close(d.fd);
	ck_assert_int_eq(read_to(7, 5000), 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	ck_assert_uint_eq(descriptors(), before);
	close_on_verbs();
}

/* RDMA_MSGP would copy it. */
TEST(a_short_source_in_a_dma_buf_goes_by_chunk)
{
	struct gannet_rpcrdma_options o = { .pad_align = 64,
					    .pad_threshold = 1 };
	uint8_t ordinary[100] = { 1, 2, 3 };

	open_on_verbs(&o, false);
	ck_assert_int_eq(register_it(), 0);
	memset(bytes, 3, BYTES);
	sum_of(10, 100);
	ck_assert_uint_eq(one_info(c).reused, 1);
	send_from((struct gannet_rpcrdma_memory){ .addr = ordinary,
						  .len = 100 }, 6);
	ck_assert_uint_eq(one_info(c).registered, 1);
	close_on_verbs();
}

/* ---- refusals */

TEST(a_reply_can_not_come_to_a_dma_buf)
{
	struct one o;

	open_on_verbs(NULL, false);
	ck_assert_int_eq(register_it(), 0);
	one_init(&o, c, OP_LONG, 5000);
	o.call.reply_mem = part(0, 6000);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	/* No call has it. */
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	close_on_verbs();
}

TEST(memory_beyond_a_dma_bufs_region_is_refused)
{
	struct gannet_rpcrdma_dmabuf d;
	struct one o;

	open_on_verbs(NULL, false);
	d = whole();
	d.use = GANNET_RPCRDMA_SOURCE;
	ck_assert_int_eq(gannet_rpcrdma_register_dmabuf(c, &d, &region), 0);
	prepare_read(&o, part(0, 10));
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	ck_assert_int_eq(register_it(), 0);
	prepare_read(&o, part(LEN - 9, 10));
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	close_on_verbs();
}

static int error_of(struct gannet_rpcrdma_dmabuf d)
{
	return gannet_rpcrdma_register_dmabuf(c, &d, &region);
}

TEST(a_dma_buf_that_can_not_be_is_refused)
{
	struct {
		struct gannet_rpcrdma_dmabuf now;
		int later;
	} newer;
	struct gannet_rpcrdma_dmabuf d;
	unsigned asked;

	open_on_verbs(NULL, false);
	asked = fake.dmabufs;
	d = whole();
	d.size = 0;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.len = 0;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.len = SIZE_MAX;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.offset = UINT64_MAX - 4095 + SKIP % 4096;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.offset++;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.use = 0;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.use = 4;
	ck_assert_int_eq(error_of(d), -EINVAL);
	d = whole();
	d.fd = -1;
	ck_assert_int_eq(error_of(d), -EBADF);
	ck_assert_uint_eq(fake.dmabufs, asked);

	memset(&newer, 0, sizeof(newer));
	newer.now = whole();
	newer.now.size = sizeof(newer);
	ck_assert_int_eq(gannet_rpcrdma_register_dmabuf(c, &newer.now,
							&region), 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	newer.later = 1;
	ck_assert_int_eq(gannet_rpcrdma_register_dmabuf(c, &newer.now,
							&region), -E2BIG);
	close_on_verbs();
}

static const struct { int of_device, of_library; } errors[] = {
	{ EOPNOTSUPP, -EOPNOTSUPP }, { ENOSYS, -EOPNOTSUPP },
	{ EPROTONOSUPPORT, -EOPNOTSUPP }, { ENOMEM, -ENOMEM }, { EIO, -EIO },
	{ EINVAL, -EINVAL },
};

TEST_LOOP(a_device_that_takes_no_dma_buf_says_so, 0,
	  2 * ARRAY_SIZE(errors))
{
	struct gannet_rpcrdma_options o = { .registration = _i % 2 ?
		GANNET_RPCRDMA_WINDOWS : GANNET_RPCRDMA_EACH_CALL };
	unsigned before;

	open_on_verbs(&o, true);
	before = descriptors();
	set(&fake.dmabuf_errno, errors[_i / 2].of_device);
	ck_assert_int_eq(register_it(), errors[_i / 2].of_library);
	ck_assert_uint_eq(descriptors(), before);
	ck_assert_int_eq(one_ping(c), 0);
	close_on_verbs();
}

/* It moves memory by the CPU; so does iWARP without a device. */
TEST_LOOP(a_fabric_without_devices_takes_no_dma_buf, 0, 2)
{
	if (_i)
		setenv("RIG_FABRIC", "iwarp", 1);
	else
		rig_on_loop();
	rig_open(&rig, NULL);
	connect_client(NULL);
	make_dmabuf();
	ck_assert_int_eq(register_it(), -EOPNOTSUPP);
	ck_assert_int_eq(one_ping(c), 0);
	gannet_rpcrdma_close(c);
	rig_close(&rig);
}

/* ---- ends */

static void break_now(void *arg)
{
	mutex_lock(&c->lock);
	if (c->r)
		rpcrdma_requester_close(c->r);
	mutex_unlock(&c->lock);
}

static bool is_lost(void *arg)
{
	return !one_info(c).connected;
}

static void break_connection(void)
{
	loop_call(c->loop, break_now, NULL);
	wait_until(is_lost, NULL);
}

TEST(a_new_connection_registers_the_dma_buf_again)
{
	unsigned before;

	open_on_verbs(NULL, false);
	before = registrations();
	ck_assert_int_eq(register_it(), 0);
	ck_assert_int_eq(read_to(1, 9000), 0);
	break_connection();
	ck_assert_int_eq(read_to(2, 9000), 0);
	ck_assert_uint_eq(fake.dmabufs, 2);
	ck_assert_uint_eq(registrations(), before + 1);
	close_on_verbs();
}

TEST(a_call_fails_when_a_new_connection_takes_no_dma_buf)
{
	open_on_verbs(NULL, false);
	ck_assert_int_eq(register_it(), 0);
	ck_assert_int_eq(read_to(1, 9000), 0);
	set(&fake.dmabuf_errno, EOPNOTSUPP);
	break_connection();
	ck_assert_int_eq(read_to(1, 9000), -EOPNOTSUPP);
	ck_assert_int_eq(one_ping(c), 0);
	close_on_verbs();
}

TEST(a_part_is_registered_alone_when_the_region_can_not_be)
{
	open_on_verbs(NULL, false);
	ck_assert_int_eq(register_it(), 0);
	set(&fake.dmabuf_most, LEN - 1);
	break_connection();
	ck_assert_int_eq(read_to(4321, 5000), 0);
	ck_assert_uint_eq(fake.dmabuf.offset, SKIP + 4321);
	ck_assert_uint_eq(fake.dmabuf.len, 5000);
	ck_assert_uint_eq(fake.dmabuf.iova, (uintptr_t)name + SKIP + 4321);
	close_on_verbs();
}

/* Starts a call whose reply waits. */
static void start_held(struct one *x)
{
	one_init(x, c, OP_HOLD, 0);
	x->call.nsinks = 1;
	x->call.sink[0] = part(0, 100);
	one_start(x, c);
	wait_until(held, NULL);
}

/* RFC 8166 section 4.4.1: the responder can no longer reach it. */
TEST(a_cancelled_call_gives_its_part_back_at_once)
{
	struct gannet_rpcrdma_options o = {
		.registration = GANNET_RPCRDMA_WINDOWS };
	unsigned before;
	struct one x;

	open_on_verbs(&o, true);
	ck_assert_int_eq(register_it(), 0);
	before = registrations();
	start_held(&x);
	ck_assert_uint_eq(registrations(), before + 1);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &x.call), 0);
	ck_assert_int_eq(one_wait(&x), -ECANCELED);
	ck_assert_uint_eq(registrations(), before);
	close_on_verbs();
}

/* Other calls might be using its handle. */
TEST(a_cancelled_call_with_a_longer_registration_has_its_reply)
{
	struct one x;

	open_on_verbs(NULL, false);
	ck_assert_int_eq(register_it(), 0);
	start_held(&x);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), -EBUSY);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &x.call), 0);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&x), 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	close_on_verbs();
}

TEST(a_dma_buf_that_stays_registered_ends_the_connection)
{
	unsigned before;

	open_on_verbs(NULL, false);
	before = descriptors();
	ck_assert_int_eq(register_it(), 0);
	set(&fake.dereg_errno, EBUSY);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), -EIO);
	set(&fake.dereg_errno, 0);
	wait_until(is_lost, NULL);
	ck_assert_int_eq(one_ping(c), 0);
	ck_assert_uint_le(descriptors(), before);
	close_on_verbs();
}
