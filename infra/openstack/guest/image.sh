#!/usr/bin/env bash
# image.sh - a guest of Debian's packages: kernel, initramfs and disk, for a server without firmware.
#
#   image.sh up FOLDER       build what has changed: FOLDER/{vmlinux,initrd.img,disk.qcow2,recipe}
#   image.sh recipe          what they are made by, as one number
#   image.sh probe ACCELERATOR FOLDER    whether QEMU boots this kernel with kvm, or with tcg
#
# Kernel and initramfs are handed to the machine directly: firmware and boot loader would take longer
# than everything else, where there is no KVM. The disk is one ext4 file system with Docker's engine.
# Its first process is busybox, which runs guest/boot; in place of cloud-init, guest/agent.py does
# what our user data says (see there why).
set -euo pipefail
umask 022 # what is in an image is read by another user
source "$(dirname "$(readlink -f "$0")")/../../live/common.sh"

here=$repository/infra/openstack/guest
disk_mb=8192      # of the file system; only what is in it takes room
probe_within_s=60
packages=docker.io,iptables,kmod,iproute2,python3-yaml,busybox-static
initial_modules=(virtio_pci virtio_blk virtio_net)

say() { echo "$(date +%T) $*"; }
kernel_package() { apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-[0-9]/ {print $2; exit}'; }
recipe() { { cat "$here"/*; kernel_package; } | sha256sum | cut -c1-16; }

kernel() { # FOLDER: unpacked into FOLDER/kernel; the kernel without its decompressor as vmlinux
    local folder=$1 package offset one
    package=$(kernel_package)
    [ -n "$package" ] || die "apt knows no linux-image-cloud-amd64; is apt-get update due?"
    mkdir "$folder/kernel"
    (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "$package" >"$folder/apt.log" 2>&1) ||
        die "$package cannot be fetched; see $folder/apt.log"
    dpkg-deb -x "$folder/$package"_*.deb "$folder/kernel"
    rm "$folder/$package"_*.deb
    version=$(basename "$folder"/kernel/lib/modules/*)
    depmod -b "$folder/kernel" "$version"
    # Decompressing it takes an emulated processor longer than booting it.
    one=$folder/kernel/boot/vmlinuz-$version
    for offset in $(LC_ALL=C grep -abo $'\x02\x21\x4c\x18' "$one" | cut -d: -f1); do
        tail -c "+$((offset + 1))" "$one" | lz4 -dqc >"$folder/vmlinux" 2>/dev/null || true # more follows it
        [ "$(head -c 4 "$folder/vmlinux")" != $'\x7fELF' ] || return 0
    done
    cp "$one" "$folder/vmlinux"
}
initramfs() { # FOLDER: busybox, and the modules without which there is no disk and no network
    local folder=$1 root=$1/initramfs module number=10
    mkdir -p "$root"/{bin,modules,proc,sys,dev,disk}
    cp /bin/busybox "$root/bin/busybox"
    install -m 755 "$here/init" "$root/init"
    for module in $(modprobe -d "$folder/kernel" -S "$version" --show-depends -a "${initial_modules[@]}" |
        awk '$1 == "insmod" && !seen[$2]++ {print $2}'); do
        cp "$module" "$root/modules/$((number += 1))-${module##*/}"
    done
    [ -n "$(ls "$root/modules")" ] || die "the kernel has no modules for a virtual disk"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/initrd.img"
    rm -rf "$root"
}
disk() { # FOLDER
    local folder=$1 root=$1/root one
    mkdir -p "$root"
    mount -t tmpfs -o size=2g tmpfs "$root" # package tools sync each of thousands of files
    debootstrap --variant=minbase --include="$packages" $suite "$root" "$(mirror)" >"$folder/debootstrap.log" ||
        die "debootstrap failed; see $folder/debootstrap.log"
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/etc/resolv.conf \
        "$root"/usr/share/{doc,man,info,locale,lintian}
    sources >"$root/etc/apt/sources.list"
    # One process each instead of a translation into nftables.
    for one in iptables ip6tables; do chroot "$root" update-alternatives --quiet --set $one /usr/sbin/$one-legacy; done
    ln -sf /bin/busybox "$root/sbin/init"
    for one in poweroff reboot halt; do ln -sf /bin/busybox "$root/sbin/$one"; done
    install -d "$root/usr/lib/tidebench" "$root/etc/containerd"
    install -m 755 "$here"/{agent.py,boot,services} "$root/usr/lib/tidebench/"
    ln -sf /usr/lib/tidebench/services "$root/usr/bin/systemctl"
    install -m 644 "$here/inittab" "$root/etc/inittab"
    install -m 644 "$here/containerd.toml" "$root/etc/containerd/config.toml"
    chroot "$root" python3 -m compileall -q -f --invalidation-mode unchecked-hash /usr/lib/tidebench /usr/lib/python3*
    cp -a "$folder/kernel/lib/modules" "$root/lib/"
    # What a server loses with its power nobody looks for: no journal, no checksums.
    rm -f "$folder/disk.raw"
    mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=0 -i 65536 -m 0 -d "$root" \
        "$folder/disk.raw" "${disk_mb}M"
    umount "$root"
    rmdir "$root"
    qemu-img convert -O qcow2 "$folder/disk.raw" "$folder/disk.qcow2"
    rm "$folder/disk.raw"
}
up() { # FOLDER
    local folder version key
    folder=$(realpath -m "$1") key=$(recipe)
    [ "$(cat "$folder/recipe" 2>/dev/null)" != "$key" ] || return 0
    need_root
    need debootstrap qemu-img mke2fs lz4 cpio depmod busybox
    umount "$folder.new/root" 2>/dev/null || true # of a build that was killed
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    trap "umount '$folder.new/root' 2>/dev/null || true" EXIT
    kernel "$folder.new"
    initramfs "$folder.new"
    disk "$folder.new"
    rm -rf "$folder.new/kernel" "$folder"
    echo "$key" >"$folder.new/recipe"
    mv "$folder.new" "$folder"
    say "built a guest in $SECONDS s, $(du -sm "$folder/disk.qcow2" | cut -f1) MB"
}
probe() { # ACCELERATOR FOLDER: a module that loads is no proof; a kernel that says so is
    [ "$1" != kvm ] || [ -w /dev/kvm ] || die "there is no /dev/kvm"
    timeout $probe_within_s qemu-system-x86_64 -M pc -accel "$1" -m 256 -nodefaults -no-user-config -display none \
        -no-reboot -serial stdio -kernel "$2/vmlinux" -initrd "$2/initrd.img" \
        -append "console=ttyS0 panic=-1 tidebench.probe" </dev/null 2>&1 | grep -q "tidebench: the kernel runs" ||
        die "no guest boots with $1 on this machine within $probe_within_s s"
}

case ${1:-} in
    up) up "${2:?folder}" ;;
    recipe) recipe ;;
    probe) probe "${2:?kvm or tcg}" "${3:?folder}" ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
