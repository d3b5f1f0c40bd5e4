# SPDX-License-Identifier: BSD-2-Clause
# Table of medians, and of ratios against a peer, from gannet-load's JSON
# lines.  A ratio is taken within one round; its spread is over the rounds.

function get(key,	m) {
	if (!match($0, "\"" key "\": \"?[^,\"}]*"))
		return ""
	m = substr($0, RSTART, RLENGTH)
	sub(/^"[^"]*": "?/, "", m)
	return m
}

# Median of v[1..n]; sorts it.
function median(v, n,	i, j, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function middle(what, s, w,	v, n, r) {
	n = 0
	for (r = 1; r <= rounds; r++)
		if ((what, s, w, r) in value)
			v[++n] = value[what, s, w, r]
	return n ? median(v, n) : -1
}

# "median (min-max)" of a over b, round by round.
function ratio(what, a, b, w,	v, n, r, m) {
	n = 0
	for (r = 1; r <= rounds; r++)
		if ((what, a, w, r) in value && value[what, b, w, r] > 0)
			v[++n] = value[what, a, w, r] / value[what, b, w, r]
	if (!n)
		return "-"
	m = median(v, n)
	return sprintf("%.2f (%.2f-%.2f)", m, v[1], v[n])
}

{
	s = get("server")
	w = s == "raw" ? get("work") : get("name")
	r = get("round") + 0
	if (r > rounds)
		rounds = r
	if (s == "raw") {
		if (!(w in raws))
			raw[++nraw] = w
		raws[w] = 1
	} else {
		if (!(w in seen))
			work[++nwork] = w
		if (!(s in servers))
			server[++nserver] = s
		seen[w] = servers[s] = 1
	}
	value["ops", s, w, r] = get("ops_per_s")
	value["bytes", s, w, r] = get("bytes_per_s")
	value["entries", s, w, r] = get("entries_per_s")
	value["p50", s, w, r] = get("p50_us")
	value["p99", s, w, r] = get("p99_us")
	value["server", s, w, r] = get("server_us_per_op")
	value["client", s, w, r] = get("client_us_per_op")
}

END {
	printf "\n%-13s%-9s%11s%10s%10s%10s%11s%11s\n", "work", "server",
	       "calls/s", "MiB/s", "p50 us", "p99 us", "server us", "client us"
	for (i = 1; i <= nwork; i++)
		for (j = 1; j <= nserver; j++) {
			w = work[i]
			s = server[j]
			if (middle("ops", s, w) < 0)
				continue
			printf "%-13s%-9s%11.0f%10.1f%10.1f%10.1f%11.2f%11.2f\n",
			       j == 1 ? w : "", s, middle("ops", s, w),
			       middle("bytes", s, w) / 1048576,
			       middle("p50", s, w), middle("p99", s, w),
			       middle("server", s, w), middle("client", s, w)
		}
	for (j = 1; j <= nserver; j++) {
		if (server[j] == "gannet" || server[j] == "mem")
			continue
		printf "\nagainst %s: median (range) of %d rounds\n",
		       server[j], rounds
		printf "%-13s%24s%24s%24s%24s\n", "work", "gannet calls/s",
		       "server CPU per call", "mem calls/s",
		       "server CPU per call"
		for (i = 1; i <= nwork; i++)
			printf "%-13s%24s%24s%24s%24s\n", work[i],
			       ratio("ops", "gannet", server[j], work[i]),
			       ratio("server", "gannet", server[j], work[i]),
			       ratio("ops", "mem", server[j], work[i]),
			       ratio("server", "mem", server[j], work[i])
	}
	printf "\n%-16s%14s%12s\n", "raw", "per second", "MiB/s"
	for (i = 1; i <= nraw; i++)
		printf "%-16s%14.0f%12.1f\n", raw[i],
		       middle("ops", "raw", raw[i]),
		       middle("bytes", "raw", raw[i]) / 1048576
}
