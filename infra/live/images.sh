#!/usr/bin/env bash
# images.sh - the images of the operators, without Docker Hub, pushed to the local registry.
#
#   images.sh up        build what has changed, push it, and write images.json
#   images.sh env       path of images.json: digests by image, and the image of each operator
#   images.sh list      images, sizes, and how long each took
#   images.sh lock      resolve requirements*.in again (needs uv)
#   images.sh clean     delete everything that was built
#
#   base                Debian with Python, pika and redis
#   |- operator         + include/testbeds/live/operators                                 O2-O8, relay
#   |- ocr-base         + tesseract
#   |  `- operator-ocr     + include/testbeds/live/operators                              O1
#   `- report-base      + reportlab
#      `- operator-report  + include/testbeds/live/operators                              O9
#
# The code is the last and smallest layer, and built the same it is the same: hosts fetch again
# only what has changed. Packages come from where apt and pip of this machine get theirs; nothing
# of that stays in an image.
# Settings: TIDEBENCH_LIVE_{STATE,SUBNET,REGISTRY_PORT,PYTHON}
set -euo pipefail
umask 022 # what is in an image is read by another user
source "$(dirname "$0")/common.sh"

state=$live_state/images
store=$state/store
python=${TIDEBENCH_LIVE_PYTHON:-$repository/.venv/bin/python}
user_id=10001
name=tidebench
platforms=(--platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64)
variants=(operator operator-ocr operator-report)

build() { buildah --root "$store/root" --runroot "$store/run" --storage-driver overlay --log-level error "$@"; }
say() { echo "$(date +%T) $*"; }

changed() { # IMAGE TEXT: whether it has to be built because its inputs, named by the text, are new
    [ "$(cat "$state/$1.inputs" 2>/dev/null)" != "$2" ] || ! build inspect --type image "localhost/$1" >/dev/null 2>&1
}
commit() { # CONTAINER IMAGE SINCE_S INPUTS [OPTION...]
    local container=$1 image=$2 since_s=$3 inputs=$4
    shift 4
    build umount "$container" >/dev/null
    build commit -q --format docker --rm "$@" "$container" "localhost/$image" >/dev/null
    echo "$inputs" >"$state/$image.inputs"
    echo $((SECONDS - since_s)) >"$state/$image.seconds"
    say "built $image in $((SECONDS - since_s)) s"
}
slim() { # ROOT: what an instance never reads, and what tells of this machine
    rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/* "$1/etc/resolv.conf"
    rm -rf "$1"/usr/share/{doc,man,info,locale,lintian}
    : >"$1/etc/apt/sources.list"
}
compile() { # ROOT FOLDER...: without it an instance spends its first second compiling
    local root=$1
    shift
    # By content, not by time: layers are committed with times of their own.
    chroot "$root" python3 -m compileall -q -f --invalidation-mode unchecked-hash "$@"
}
add_wheels() { # ROOT REQUIREMENTS
    "$python" -m pip --disable-pip-version-check install -qq --no-compile --no-deps --require-hashes \
        --only-binary=:all: --python-version 3.11 --implementation cp "${platforms[@]}" \
        --target "$1/opt/$name/site" --upgrade -r "$2"
    rm -rf "$1/opt/$name/site/bin"
    compile "$1" "/opt/$name/site"
}

base() {
    local since_s=$SECONDS root=$state/root inputs container mounted
    inputs=$( (cat "$here/requirements.txt"; declare -f base slim compile add_wheels) | sha256sum)
    changed base "$inputs" || return 0
    # In memory: package tools sync each of thousands of files to disk.
    umount "$root" 2>/dev/null || true
    mkdir -p "$root"
    mount -t tmpfs -o size=1g tmpfs "$root"
    debootstrap --variant=minbase --include=python3,ca-certificates,tini $suite "$root" "$(mirror)" >"$state/debootstrap.log" ||
        die "debootstrap failed; see $state/debootstrap.log"
    printf 'path-exclude=/usr/share/%s/*\n' doc man info locale >"$root/etc/dpkg/dpkg.cfg.d/slim"
    slim "$root"
    echo "$name:x:$user_id:$user_id::/nonexistent:/usr/sbin/nologin" >>"$root/etc/passwd"
    echo "$name:x:$user_id:" >>"$root/etc/group"
    install -d -m 755 "$root/run/$name"
    add_wheels "$root" "$here/requirements.txt"
    compile "$root" /usr/lib/python3.11
    container=$(build from scratch)
    mounted=$(build mount "$container")
    cp -a "$root/." "$mounted/"
    umount "$root"
    rmdir "$root"
    build config --user "$user_id:$user_id" --entrypoint '["/usr/bin/tini", "--"]' \
        --cmd '["python3", "-m", "include.testbeds.live.operators"]' --workingdir "/opt/$name" --env LANG=C.UTF-8 \
        --env PATH=/usr/local/bin:/usr/bin:/bin --env PYTHONPATH="/opt/$name:/opt/$name/site" \
        --env PYTHONDONTWRITEBYTECODE=1 --env PYTHONUNBUFFERED=1 "$container"
    commit "$container" base "$since_s" "$inputs"
}
ocr_base() {
    local since_s=$SECONDS inputs container root
    inputs=$( (cat "$state/base.inputs"; declare -f ocr_base) | sha256sum)
    changed ocr-base "$inputs" || return 0
    container=$(build from localhost/base)
    root=$(build mount "$container")
    sources >"$root/etc/apt/sources.list"
    cat /etc/resolv.conf >"$root/etc/resolv.conf"
    chroot "$root" sh -ec 'apt-get -qq update
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends tesseract-ocr tesseract-ocr-eng' \
        >"$state/ocr.log" 2>&1 || die "installing tesseract failed; see $state/ocr.log"
    slim "$root"
    commit "$container" ocr-base "$since_s" "$inputs"
}
report_base() {
    local since_s=$SECONDS inputs container
    inputs=$(cat "$state/base.inputs" "$here/requirements-report.txt" | sha256sum)
    changed report-base "$inputs" || return 0
    container=$(build from localhost/base)
    add_wheels "$(build mount "$container")" "$here/requirements-report.txt"
    commit "$container" report-base "$since_s" "$inputs"
}
with_code() { # IMAGE BASE
    local since_s=$SECONDS inputs container code
    inputs=$(cat "$state/$2.inputs" "$repository"/include/{__init__.py,testbeds/live/operators/*.py} | sha256sum)
    changed "$1" "$inputs" || return 0
    container=$(build from "localhost/$2")
    code=$(build mount "$container")/opt/$name
    install -d "$code/include/testbeds/live/operators"
    install -m 644 "$repository/include/__init__.py" "$code/include/"
    install -m 644 "$repository"/include/testbeds/live/operators/*.py "$code/include/testbeds/live/operators/"
    compile "${code%/opt/*}" "/opt/$name/include"
    commit "$container" "$1" "$since_s" "$inputs" --timestamp 0
}

push() { # IMAGE: prints how the image is addressed
    local file=$state/$1.digest
    build push -q --tls-verify=false --digestfile "$file" "localhost/$1" "docker://$registry/$name/$1:latest" >/dev/null || return 1
    echo "$registry/$name/$1@$(cat "$file")"
}
up() {
    need_root
    need debootstrap buildah curl
    [ -x "$python" ] || die "there is no $python; run make setup"
    http "http://$registry/v2/" >/dev/null || die "the registry does not answer; run $here/services.sh up registry"
    mkdir -p "$state"
    base
    ocr_base
    report_base
    with_code operator base
    with_code operator-ocr ocr-base
    with_code operator-report report-base
    local one ref separator='' refs=''
    for one in "${variants[@]}"; do
        ref=$(push "$one") || die "$one cannot be pushed to $registry"
        refs+="$separator\"$one\": \"$ref\""
        separator=', '
    done
    cat >"$state/images.json.new" <<JSON
{"images": {$refs}, "default": "operator", "image_of": {"O1": "operator-ocr", "O9": "operator-report"}}
JSON
    mv "$state/images.json.new" "$state/images.json"
    say "pushed ${variants[*]}"
}
list() {
    local image size
    build images --format '{{.Name}} {{.Size}}' | sort | while read -r image size; do
        image=${image#localhost/}
        printf '%-16s %-10s built in %s s\n' "$image" "$size" "$(cat "$state/$image.seconds" 2>/dev/null || echo '?')"
    done
}
lock() {
    need uv
    cd "$here"
    local one
    for one in requirements requirements-report; do
        # Debian's Python is older than 3.11.3, below which redis needs one package more.
        uv pip compile --quiet --python-version 3.11.2 --generate-hashes --no-emit-index-url --no-emit-find-links \
            --custom-compile-command 'infra/live/images.sh lock' $one.in --output-file $one.txt
    done
}
clean() {
    need_root
    [ -d "$state" ] || return 0
    build rm -a >/dev/null 2>&1 || true
    build rmi -a -f >/dev/null 2>&1 || true
    umount -l "$store/root/overlay" 2>/dev/null || true # it leaves this mounted on itself
    umount "$state/root" 2>/dev/null || true
    rm -rf "$state"
}

case ${1:-} in
    up | clean) # two would build in one folder, and one of them unmount what the other fills
        mkdir -p "$live_state"
        exec 9>"$live_state/images.lock"
        flock -w 1800 9 || die "another images.sh is at work" ;;
esac
case ${1:-} in
    up) up ;;
    env) echo "$state/images.json" ;;
    list) list ;;
    lock) lock ;;
    clean) clean ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
