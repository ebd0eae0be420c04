# Sourced by the scripts that need packages of Debian: install_packages NAME…
# No service is started by it. The tests start their own; the system's would only be in their way.

as_root=()
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
    as_root=(sudo)
fi

# In a subshell, so that the trap is its own.
install_packages() (
    # Debian asks this file before it starts a service; 101 is no. Somebody else's stays as it is.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap '"${as_root[@]}" rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod +x "$policy"
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@"
)
