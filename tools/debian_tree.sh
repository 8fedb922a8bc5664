# What test_debian.sh, try_packages.sh and test_wheel.sh have in common; they read it, and have a function
# `fail`.

# Of the arguments that are left the first is an option, the second its value.
value() { [ $# -ge 2 ] || fail 2 "$1 needs a value; see --help"; }

# Makes a bare tree of the Debian release $1 in the folder $2, from $mirror or from where this machine's
# packages come. The log is $3.
bare_tree() {
  command -v debootstrap >/dev/null 2>&1 || apt-get install -y --no-install-recommends debootstrap >/dev/null 2>&1 ||
    fail 4 "there is no debootstrap, and apt-get cannot install it"
  # shellcheck disable=SC2016  # the format is apt's
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep -m 1 '/debian/*$' || echo http://deb.debian.org/debian/)
  # A half-made one; nothing is ever mounted in it outside a namespace of its own.
  rm -rf --one-file-system "$2"
  echo "$1 from $mirror" >&2
  # The script's name is given: an old debootstrap does not know the names of later releases.
  debootstrap --variant=minbase --include=ca-certificates "$1" "$2" "$mirror" \
    /usr/share/debootstrap/scripts/sid >"$3" 2>&1 || {
    tail -n 20 "$3" >&2
    fail 4 "debootstrap failed: is \"$1\" at $mirror? The whole log is $3"
  }
  # Proxies as here, and whether lists may be old.
  apt-config dump | grep -iE '^Acquire::(https?::.*Proxy|Check-Valid-Until)' >"$2/etc/apt/apt.conf.d/90host" || true
}
