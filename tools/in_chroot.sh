#!/bin/bash
# Run a command in this checkout with the Pythons of Debian's unstable suite, which this machine may
# lack: tools/in_chroot.sh make test PYTHON=python3.15 VENV=build/pythons/venv-3.15, as does
# make in-chroot PYTHON_VERSION=3.15 TARGET=test.
#
# The first run makes build/pythons/debian, in some minutes; removing it begins anew. The command
# sees the checkout at the same path. It needs root, for debootstrap, mounts and chroot. Mounts are
# in a name space of their own and end with the command: what removes build/ finds none.
#
# DEBIAN_MIRROR and DEBIAN_SUITE: the archive, and which of its suites.
set -euo pipefail

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
suite=${DEBIAN_SUITE:-sid}
checkout=$(cd "$(dirname "$0")/.." && pwd -P)
root=$checkout/build/pythons/debian
pythons="3.14 3.15"

fail() {
  echo "in_chroot: $1" >&2
  exit 1
}

[ $# -gt 0 ] || fail "expected a command, as in: tools/in_chroot.sh make test PYTHON=python3.15"
[ "$(id -u)" = 0 ] || fail "needs root, for debootstrap and chroot: run it with sudo, or install \
that Python in another way (pyenv, uv) and give it to make as PYTHON=..."
command -v debootstrap >/dev/null || fail "needs debootstrap: apt-get install debootstrap"

if [ ! -e "$root/made" ]; then
  packages=ca-certificates,gcc,git,libc6-dev,make,python3-pip
  for version in $pythons; do
    packages+=,python$version,python$version-dev,python$version-venv
  done
  rm -rf "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror"
  chroot "$root" git config --system --add safe.directory '*' # another user's checkout
  touch "$root/made"
fi

# As the machine has them now: names of hosts, certificates, and where pip finds packages.
mkdir -p "$root/etc/ssl/certs" "$root/root/.config" "$root$checkout"
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
  [ ! -e $file ] || cp -L --remove-destination $file "$root$file"
done
for folder in .config/pip .pip; do
  [ ! -e ~/$folder ] || cp -rLT ~/$folder "$root/root/$folder"
done

inside() {
  mount --bind "$checkout" "$root$checkout"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
  exec env HOME=/root TMPDIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" sh -c 'cd "$0" && exec "$@"' "$checkout" "$@"
}
export checkout root
export -f inside
exec unshare --mount --propagation private bash -euc 'inside "$@"' bash "$@"
