#!/bin/sh
# libvirtd.sh FOLDER - libvirtd with folders of ours in place of the machine's, for openstack.sh, which
# calls it in a mount namespace of its own.
set -e
for one in etc:/etc/libvirt run:/run/libvirt lib:/var/lib/libvirt cache:/var/cache/libvirt; do
    mkdir -p "${one#*:}"
    mount --bind "$1/${one%%:*}" "${one#*:}"
done
# It wants to know the user and the group of Debian's package, whatever its settings say.
for one in passwd group; do
    cp /etc/$one "$1/$one"
    grep -q '^libvirt-qemu:' "$1/$one" || echo 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin' >>"$1/$one"
done
sed -i 's/^\(libvirt-qemu:x:64055:\).*/\1/' "$1/group"
grep -q '^kvm:' "$1/group" || echo 'kvm:x:64056:' >>"$1/group"
for one in passwd group; do mount --bind "$1/$one" "/etc/$one"; done
# Beside controllers of cgroup v1 it takes an empty hierarchy of v2 for one it can use.
! grep -q ' /sys/fs/cgroup/unified cgroup2 ' /proc/mounts || umount /sys/fs/cgroup/unified
exec /usr/sbin/libvirtd --config "$1/etc/libvirtd.conf" --pid-file "$1/run/libvirtd.pid"
