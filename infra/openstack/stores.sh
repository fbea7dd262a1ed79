# What openstack.sh needs before a service can start: packages, wheels, configuration, databases;
# sourced, not run.

# ------------------------------------------------------------- installation

packages() {
    local wanted=()
    [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || wanted+=(rabbitmq-server)
    [ -x /usr/sbin/mariadbd ] || wanted+=(mariadb-server-core)
    [ "$hypervisor" = stand-in ] || wanted+=($(guest_packages))
    [ ${#wanted[@]} -gt 0 ] || return 0
    apt_install "${wanted[@]}" >"$log/apt.log" 2>&1 </dev/null ||
        { tail -n 5 "$log/apt.log" >&2; die "apt-get failed; is apt-get update due?"; }
}
wheels() {
    if ! cmp -s "$here/requirements.txt" "$venv/.installed"; then
        if command -v uv >/dev/null; then
            [ -x "$venv/bin/python" ] || uv venv -q --allow-existing --python "$python" "$venv"
            uv pip install -q --python "$venv/bin/python" -r "$here/requirements.txt"
        else
            [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
            "$venv/bin/pip" install -q -r "$here/requirements.txt"
        fi >"$log/pip.log" 2>&1 || { tail -n 5 "$log/pip.log" >&2; die "the wheels cannot be installed"; }
        cp "$here/requirements.txt" "$venv/.installed"
    fi
    local packages
    packages=$(echo "$venv"/lib/python3.*/site-packages)
    # Between two looks for the answer of a remote call oslo.messaging sleeps half a second, around a
    # defect of eventlet that is not used here (Launchpad 2035113); a boot makes ten such calls.
    sed -i 's/time\.sleep(0\.5)/time.sleep(0.01)/' "$packages/oslo_messaging/_drivers/amqpdriver.py"
    cp "$here/lib/tb_openstack/nova_virt.py" "$packages/nova/virt/tb.py" # Nova loads drivers from its own
    cp "$here/lib/tb_openstack/nova_guest.py" "$packages/nova/virt/tb_guest.py"
}

# ------------------------------------------------------------ configuration

secret() { # of every account: made once
    [ -s "$state/secret" ] || (umask 077; head -c 32 /dev/urandom | sha256sum | cut -c1-40 >"$state/secret")
    cat "$state/secret"
}
database() { echo "mysql+pymysql://tb:$password@localhost/$1?unix_socket=$socket&charset=utf8mb3"; }
account() { # SECTION: the service account, as keystoneauth reads it
    printf '[%s]\n' "$1"
    cat <<CONF
auth_type = password
auth_url = $auth_url
username = tb-service
password = $password
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne
CONF
}
common() { # [DATABASE]: what all services share
    [ $# = 0 ] || printf '[database]\nconnection = %s\nmax_retries = -1\n' "$(database "$1")"
    cat <<CONF
[oslo_concurrency]
lock_path = $pids/locks
[oslo_messaging_notifications]
driver = noop
$(account keystone_authtoken)
www_authenticate_uri = $auth_url
interface = public
service_token_roles_required = true
CONF
}
configure() { # the files of etc/ are templates: this shell fills in variables and $(...)
    local one transport=rabbit://tb:$password@127.0.0.1:${port_of[rabbitmq]}/
    for one in "$here"/etc/*; do
        (umask 077; eval "cat <<__END__
$(<"$one")
__END__" >"$etc/${one##*/}")
    done
    mv "$etc/clouds.yaml" "$state/clouds.yaml"
}

# ---------------------------------------------------------------- databases

new_data() { # CACHE: an empty store with schemas, or a MariaDB with nothing in it
    local sql=/usr/share/mysql
    services_down # of an `up` that was interrupted
    rm -rf "$data"
    mkdir -p "$data"/{mariadb,glance/images,glance/staging,glance/tasks,nova/instances,neutron}
    if [ -s "$1" ]; then tar -xzf "$1" -C "$data"; return; fi
    { printf 'create database mysql;\nuse mysql;\n'
      cat $sql/mysql_system_tables.sql $sql/mysql_performance_tables.sql $sql/mysql_system_tables_data.sql
    } | mariadbd "--defaults-file=$etc/my.cnf" --bootstrap --skip-init-file >"$log/mariadb-install.log" 2>&1
}
schema() { # SERVICE CONFIG...
    (environment; export TB_PASSWORD=$password TB_AUTH_URL=$auth_url
        exec "$venv/bin/python" -m tb_openstack.schema "$@") </dev/null >"$log/schema-$1.log" 2>&1 ||
        { tail -n 25 "$log/schema-$1.log" >&2; die "the schema of $1 failed; see $log/schema-$1.log"; }
}
schemas() {
    local folder key children=() child failed=0
    for folder in fernet credential; do # what `keystone-manage fernet_setup` would write
        mkdir -p "$data/keystone/$folder"
        for key in 0 1; do
            [ -s "$data/keystone/$folder/$key" ] ||
                head -c 32 /dev/urandom | base64 | tr +/ -_ >"$data/keystone/$folder/$key"
        done
    done
    schema neutron "$etc/neutron.conf" & children+=($!)
    schema nova "$etc/nova.conf" "$etc/nova-db.conf" & children+=($!)
    schema keystone "$etc/keystone.conf" & children+=($!)
    schema glance "$etc/glance-api.conf" & children+=($!)
    schema placement "$etc/placement.conf" & children+=($!)
    for child in "${children[@]}"; do wait "$child" || failed=1; done
    [ $failed = 0 ] || die "the databases could not be set up"
}
databases_up() {
    local key cache
    # Migrating is the slow part of the first time: the outcome is kept beside the environment.
    key=$({ cat "$here/requirements.txt" "$here/lib/tb_openstack/schema.py"; mariadbd --version; echo "$password"; } | sha256sum | cut -c1-16)
    cache=$venv/schemas-$key.tar.gz
    [ -e "$data/schema" ] || new_data "$cache"
    start epmd; start rabbitmq; start mariadb
    launcher_up
    wait_for mariadb
    [ "$(cat "$data/schema" 2>/dev/null)" != "$key" ] || return 0
    say "creating schemas"
    schemas
    if [ ! -e "$data/schema" ]; then # nothing is in there but the schemas
        stop mariadb
        echo "$key" >"$data/schema"
        tar -cf - -C "$data" mariadb keystone schema | gzip -1 >"$cache.$$"
        mv "$cache.$$" "$cache"
        start mariadb
        wait_for mariadb
    fi
    echo "$key" >"$data/schema"
}
