# Real guests for openstack.sh: libvirtd, its settings, the image; sourced, not run.
#
# libvirtd runs in a mount namespace of its own, in which /etc/libvirt, /run/libvirt, /var/lib/libvirt
# and /var/cache/libvirt are folders of ours, and uses no cgroups. QEMU is its child and outlives it.
# Guests hang on the bridge of infra/live by taps, which go with them.

libvirt=$state/libvirt # what it finds in place of the machine's own folders
libvirt_socket=$pids/libvirt/libvirt-sock
libvirt_uri="qemu:///system?socket=$libvirt_socket"
guest=$state/guest     # kernel, initramfs and disk
instances=$data/nova/instances

guest_packages() { # that are missing
    local one command package
    for one in qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils libvirtd:libvirt-daemon \
        virsh:libvirt-clients debootstrap:debootstrap genisoimage:genisoimage busybox:busybox-static \
        lz4:lz4 cpio:cpio depmod:kmod mke2fs:e2fsprogs; do
        command=${one%:*} package=${one#*:}
        command -v "$command" >/dev/null || echo "$package"
    done
    [ -e /usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so ] || echo libvirt-daemon-driver-qemu
    [ -e /usr/lib/python3/dist-packages/libvirt.py ] || echo python3-libvirt
}
guests_install() { # once their packages are there
    local one to
    mkdir -p "$state/python"
    # The same C interface: both are Python 3.11. The wheel would have to be compiled.
    for one in /usr/lib/python3/dist-packages/libvirt*.{py,so}; do
        to=$state/python/${one##*/}
        cmp -s "$one" "$to" || { cp "$one" "$to.new"; mv "$to.new" "$to"; } # a library in use is not to be written
    done
    "$venv/bin/python" -c "import sys; sys.path.append('$state/python'); import libvirt" ||
        die "Debian's python3-libvirt does not fit $venv; set TIDEBENCH_OPENSTACK_PYTHON to a Python 3.11"
    "$here/guest/image.sh" up "$guest"
    [ "$hypervisor" != kvm ] || "$here/guest/image.sh" probe kvm "$guest"
}
guests_configure() {
    mkdir -p "$libvirt"/{etc,run,lib,cache} "$pids/libvirt"
    cat >"$libvirt/etc/libvirtd.conf" <<CONF
unix_sock_dir = "$pids/libvirt"
auth_unix_rw = "none"
CONF
    cat >"$libvirt/etc/qemu.conf" <<CONF
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
CONF
}
compute_conf() { # of nova.conf, by hypervisor
    if [ "$hypervisor" = stand-in ]; then echo "compute_driver = tb.HookedDriver"; return; fi
    cat <<CONF
compute_driver = tb_guest.GuestDriver
instances_path = $instances
force_config_drive = true
config_drive_format = iso9660
mkisofs_cmd = genisoimage
use_cow_images = true
force_raw_images = false
pointer_model = ps2mouse
cpu_allocation_ratio = 64
ram_allocation_ratio = 4
disk_allocation_ratio = 64
reserved_host_memory_mb = 0
# A restarted libvirtd is noticed when it is asked for something.
update_resources_interval = 10
# Servers that were deleted while this service was down, which Nova does without it.
running_deleted_instance_poll_interval = 10
running_deleted_instance_timeout = 0
instance_delete_interval = 10
[libvirt]
virt_type = $hypervisor
cpu_mode = $([ "$hypervisor" = kvm ] && echo host-passthrough || echo none)
tb_cache_size = 128
connection_uri = $libvirt_uri
hw_machine_type = x86_64=pc
images_type = qcow2
disk_cachemodes = file=unsafe
inject_partition = -2
swtpm_enabled = false
[image_cache]
remove_unused_original_minimum_age_seconds = 3600
[spice]
enabled = false
[serial_console]
enabled = false
$(for one in vif_plug_linux_bridge_privileged nova_sys_admin privsep_osbrick; do
    printf '[%s]\nhelper_command = %s\n' $one "$venv/bin/privsep-helper --config-file $etc/nova.conf" # there is no sudo
done)
CONF
}
virsh_says() { timeout 20 virsh -q -c "$libvirt_uri" "$@" 2>/dev/null </dev/null; }
guest_processes() { pgrep -f "qemu-system-.*$instances/" || true; }
guests() { # what is there of any guest, one a line
    local one
    [ "$hypervisor" != stand-in ] || return 0
    { virsh_says list --all --name || true; } | sed '/^$/d; s/^/domain /' # libvirtd may be down
    guest_processes | sed 's/^/process /'
    for one in "/sys/class/net/$bridge/brif"/tap*; do [ ! -e "$one" ] || echo "tap ${one##*/}"; done
    for one in "$instances"/*-*-*-*-*; do [ ! -e "$one" ] || echo "folder ${one##*/}"; done
}
guests_down() { # whatever Nova knows of them
    local one
    for one in $(virsh_says list --all --name || true); do
        virsh_says destroy "$one" >/dev/null || true
        virsh_says undefine "$one" >/dev/null || true
    done
    for one in $(guest_processes); do kill -KILL "$one" 2>/dev/null || true; done # libvirtd was down
    for one in "/sys/class/net/$bridge/brif"/tap*; do [ ! -e "$one" ] || ip link del "${one##*/}"; done
}
