/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor - the order of the examinations. */
#include "tools/nfs/doctor.h"

#include <jansson.h>
#include <string.h>

static bool is_host(const char *text)
{
	const char *scheme = strstr(text, "://");

	return !strchr(scheme ? scheme + 3 : text, '/');
}

int tool_doctor(const char *url, const struct tool_options *given)
{
	struct tool_options o = *given;
	struct doctor d = { .code = TOOL_OK };
	int err;

	o.all = true;
	if (o.config.connect_ms == 0)
		o.config.connect_ms = 5000;
	if (o.config.timeout_ms == 0)
		o.config.timeout_ms = 10000;
	o.config.retries = 1;
	err = tool_parse_host(&d.t, url, &o);
	if (err != TOOL_OK)
		return err;
	if (o.json)
		d.findings = json_array();
	d.alone = is_host(url);
	if (doctor_name(&d) && doctor_ports(&d) && doctor_mount(&d) &&
	    doctor_secure(&d) && doctor_path(&d)) {
		doctor_groups(&d);
		doctor_transports(&d);
		doctor_locks(&d);
	}
	if (d.mounted)
		nfsc_unmount(&d.t.url, &o.config, &d.t.mount);
	doctor_conclude(&d);
	if (d.addresses)
		freeaddrinfo(d.addresses);
	return d.code;
}
