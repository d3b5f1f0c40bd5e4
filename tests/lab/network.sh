# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Sourced inside the guest: two links with addresses of both families, a soft
# RoCE device on the first and a soft iWARP device on the second.  A client
# can't reach either at 127.0.0.1.
network()
{
	local n link
	for n in 1 2; do
		ip link add dummy$n type dummy
		ip link set dummy$n mtu 9000 up
		ip addr add 2001:db8:$n::1/64 dev dummy$n nodad
	done
	ip addr add 192.0.2.1/24 dev dummy1
	ip addr add 198.51.100.1/24 dev dummy2
	for link in rxe:dummy1 siw:dummy2; do
		rdma link add "${link%:*}0" type "${link%:*}" \
			netdev "${link#*:}" || echo "# no ${link%:*} device"
	done
	rpcbind
	# The kernel's mountd would take groups from /etc/group instead.
	echo '[mountd]' > /etc/nfs.conf
}
