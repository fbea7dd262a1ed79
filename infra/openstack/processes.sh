# Processes of openstack.sh: started, asked, stopped; sourced, not run.

pid_of() { # NAME: of a service that runs
    local pid when
    read -r pid when 2>/dev/null <"$pids/$1.pid" || return 1
    running "$pid" && [ "$(born "$pid")" = "$when" ] && echo "$pid"
}
members() { # GROUP: processes of it that are not zombies
    ps -e -o pid=,pgid=,stat= | awk -v group="$1" '$2 == group && $3 !~ /^Z/ {print $1}'
}

# How a service is run, into the array command; of a Python service what tb_openstack.launch gets.
command_of() { # NAME
    case $1 in
        epmd) command=(epmd -port "${port_of[epmd]}") ;;
        mariadb) command=(mariadbd "--defaults-file=$etc/my.cnf") ;;
        rabbitmq) command=(/usr/lib/rabbitmq/bin/rabbitmq-server) ;;
        libvirtd) command=(unshare --mount --propagation private "$here/libvirtd.sh" "$libvirt") ;;
        clock) command=(clock "$address" "$clock_port") ;;
        nova) command=(nova "${port_of[nova]}" nova.wsgi.osapi_compute) ;;
        nova-compute) command=("$1" --config-file "$etc/nova.conf") ;;
        nova-*) command=("$1" --config-file "$etc/nova.conf" --config-file "$etc/nova-db.conf") ;;
        *) command=("$1" "${port_of[$1]}" "$1.wsgi.api") ;;
    esac
}
environment() { # of every service: nothing of the caller's may leak in
    unset "${!OS_@}" "${!RABBITMQ_@}" "${!AIRFLOW_@}"
    export HOME=$state/home PYTHONPATH=$here/lib:$state/python PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
    [ "$hypervisor" = stand-in ] || export TB_BRIDGE=$bridge
    export TIDEBENCH_OPENSTACK_STATE=$state TB_FAULTS=$state/faults.json TB_MACHINE=$machine TB_RABBIT=127.0.0.1:${port_of[rabbitmq]} TB_SECRET=$state/secret
    export OS_KEYSTONE_CONFIG_DIR=$etc OS_PLACEMENT_CONFIG_DIR=$etc OS_GLANCE_CONFIG_DIR=$etc
    export OS_NOVA_CONFIG_FILES="$venv/etc/nova/api-paste.ini;$etc/nova.conf;$etc/nova-db.conf"
    export OS_NEUTRON_CONFIG_DIR=$etc OS_NEUTRON_CONFIG_FILES=neutron.conf OS_NOVA_DISABLE_EVENTLET_PATCHING=1
    export ERL_CRASH_DUMP_SECONDS=0 ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=${port_of[epmd]}
    export RABBITMQ_NODENAME=tbos${port_of[rabbitmq]}@localhost RABBITMQ_CONF_ENV_FILE=/dev/null
    export RABBITMQ_CONFIG_FILE=$etc/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$etc/rabbitmq-plugins
    export RABBITMQ_MNESIA_BASE=$data/rabbitmq RABBITMQ_LOG_BASE=$log RABBITMQ_DIST_PORT=$rabbit_dist_port
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +sbwt none'
}
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# During `up` Python services are forks of one process that has imported what they share.
launcher='' to_launcher=''
launcher_up() {
    exec {to_launcher}> >(environment; cd "$state"; exec 9>&- "$venv/bin/python" -m tb_openstack.launch >"$log/launch.log" 2>&1)
    launcher=$!
}
launcher_down() { exec {to_launcher}>&-; launcher='' to_launcher=''; }
start() { # NAME
    local name=$1 at=${port_of[$1]:-}
    pid_of "$name" >/dev/null && return
    command_of "$name"
    if [ -n "$at" ] && listens "$at"; then die "port $at of $name is taken; set TIDEBENCH_OPENSTACK_PORT"; fi
    rm -f "$pids/$name.pid"
    case $name in
        mariadb) rm -f "$socket" ;; # of one that was killed: that it is there means ready
        libvirtd) rm -f "$libvirt_socket" ;;
        epmd | rabbitmq) ;;
        *)
            if [ -n "$launcher" ]; then
                (IFS=$'\t'; echo "$pids/$name.pid"$'\t'"$log/$name.log"$'\t'"${command[*]}" >&"$to_launcher")
                return
            fi
            command=("$venv/bin/python" -m tb_openstack.launch "${command[@]}") ;;
    esac
    # In a process group of its own, so that stopping it reaches its children.
    (environment; cd "$state"; exec 9>&-; [ -z "$to_launcher" ] || exec {to_launcher}>&-
        exec setsid "${command[@]}" </dev/null >>"$log/$name.log" 2>&1) &
    echo "$! $(born $!)" >"$pids/$name.pid"
}
alive() { # NAME: it runs, or the launcher has yet to fork it
    pid_of "$1" >/dev/null || { [ -n "$launcher" ] && [ ! -e "$pids/$1.pid" ] && running "$launcher"; }
}
answers() { # NAME
    case $1 in
        mariadb) [ -S "$socket" ] ;;
        libvirtd) virsh_says uri >/dev/null ;;
        nova-*) true ;; # Nova itself knows, and seeding asks it
        clock) ss -lunH "src = $address:$clock_port" | grep -q . ;;
        *) listens "${port_of[$1]}" ;;
    esac
}
wait_for() { # NAME...
    local one deadline
    for one in "$@"; do
        deadline=$((SECONDS + within_s))
        until answers "$one"; do
            alive "$one" || { tail -n 25 "$log/$one.log" >&2; die "$one ended; see $log/$one.log"; }
            [ $SECONDS -lt $deadline ] || die "$one does not answer within $within_s s; see $log/$one.log"
            sleep 0.1
        done
    done
}
stop() { # NAME: its group, politely for a while
    local name=$1 group limit=30 # tenths of a second
    case $name in mariadb | rabbitmq) limit=200 ;; esac
    read -r group _ 2>/dev/null <"$pids/$name.pid" || return 0
    if pid_of "$name" >/dev/null || [ ! -e "/proc/$group" ]; then # else the number is somebody else's
        kill -CONT -- "-$group" 2>/dev/null || true
        kill -TERM -- "-$group" 2>/dev/null || true
        while [ -n "$(members "$group")" ]; do
            [ $((limit -= 1)) -gt 0 ] || { kill -KILL -- "-$group" 2>/dev/null || true; sleep 0.2; break; }
            sleep 0.1
        done
    fi
    rm -f "$pids/$name.pid"
}
