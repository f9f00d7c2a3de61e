#!/bin/sh
# SPDX-License-Identifier: MIT
# deb.sh - the Debian packages of `make deb`: what lintian calls an error, and a life in a minimal Debian 12: installed, used, upgraded, removed,
# purged, with nothing left behind. The system is made by mmdebstrap, once, in DIST_ROOTS.
set -u
. "$(dirname "$0")/../build/lib.sh"
cd "$TARE_SRC" || exit 1
: "${DIST_ROOTS:=$TARE_SRC/third_party/portable/roots}"
version=$(sed -n 's/^#define TARE_VERSION "\(.*\)"/\1/p' include/tare/tare.h)
arch=$(dpkg --print-architecture 2>/dev/null)
set_of() { for p in tare libtare0 libtare-dev python3-tare; do echo "dist/${p}_$version-$1_$arch.deb"; done; }
# shellcheck disable=SC2046
if ! ls $(set_of 1) >/dev/null 2>&1; then
    skip "the Debian packages" "not in dist/ (make deb, on Debian)"
    finish
fi

# shellcheck disable=SC2046
no_errors() { lintian --fail-on error --allow-root $(set_of 1); }
if command -v lintian >/dev/null; then check "lintian finds no error" no_errors; else skip "lintian finds no error" "no lintian"; fi
holds() { dpkg-deb -c "dist/$1_$version-1_$arch.deb" | awk '{print $6}' >"$TMPDIR/list" && shift && for f; do grep -q "^\./$f\$" "$TMPDIR/list" || { echo "no $f"; return 1; }; done; }
lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null)
check "tare: command, pages, completion, its list of parts" holds tare usr/bin/tare usr/share/man/man1/tare-bench.1.gz usr/share/doc/tare/copyright \
    usr/share/bash-completion/completions/tare usr/share/zsh/vendor-completions/_tare usr/share/fish/vendor_completions.d/tare.fish usr/share/doc/tare/tare.cdx.json
check "libtare-dev: header, archive, pkg-config, CMake" holds libtare-dev usr/include/tare/tare.h "$lib/libtare.a" "$lib/libtare.so" "$lib/pkgconfig/tare.pc" "$lib/cmake/tare/tare-config.cmake"
check "libtare0: the library by its soname" holds libtare0 "$lib/libtare.so.0" "$lib/libtare.so.$version" usr/share/doc/libtare0/copyright

root=$DIST_ROOTS/bookworm
life="installed, used, upgraded, removed and purged in a minimal Debian 12"
[ "$(id -u)" = 0 ] || { skip "$life" "not root"; finish; }
grep -q 'VERSION_ID="12"' /etc/os-release || { skip "$life" "the packages were built for another Debian"; finish; }
# What the packages need of Debian, with a compiler for libtare-dev: the packages themselves are installed by dpkg alone.
if [ ! -x "$root/bin/sh" ] && ! { command -v mmdebstrap >/dev/null && mkdir -p "$DIST_ROOTS" && timeout 900 mmdebstrap -q --variant=minbase \
    --include=gcc,libc6-dev,pkg-config,python3,libjansson4,libyaml-0-2,libzstd1,zlib1g,libssl3,libsqlite3-0 bookworm "$root"; }; then
    skip "$life" "mmdebstrap could not make a Debian 12 here"
    finish
fi
inside()
{
    unshare --mount --pid --fork sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
files() { (cd "$root" && find . \( -path ./proc -o -path ./trial -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune -o -print | LC_ALL=C sort); }
installed() # installed REVISION
{
    # shellcheck disable=SC2046
    cp $(set_of "$1") "$root/trial/" && inside sh -c "dpkg -i /trial/*-$1_$arch.deb"
}
used()
{
    cp tests/build/user.c "$root/trial/"
    inside sh -c 'cd /trial && tare version && tare synth mlp -o m.onnx && tare inspect m.onnx >/dev/null && tare run --memory -o r.json --trace r.tare -- true &&
        cc user.c $(pkg-config --cflags --libs tare) -o user && [ "$(./user)" = "fine out of memory" ] &&
        python3 -c "import tare; tare.start(\"x.tare\"); tare.scope(\"s\").__enter__(); tare.stop(); from tare import _command, _gpu_block, _memory_block as m; import os
assert _command.path() == \"/usr/bin/tare\" and os.path.exists(m._AGENT) and os.path.exists(_gpu_block.LIBRARY)"'
}
gone() { inside dpkg "$1" python3-tare libtare-dev tare libtare0; }
nothing_left() { files >"$TMPDIR/after" && diff "$TMPDIR/before" "$TMPDIR/after"; }
of_revision() { [ "$(inside dpkg-query -W -f '${Version}' tare)" = "$version-$1" ]; }

mkdir -p "$root/trial" && rm -rf "$root"/trial/* && inside dpkg --purge python3-tare libtare-dev tare libtare0 >/dev/null 2>&1
files >"$TMPDIR/before"
check "installed" installed 1
check "used: command, library, Python" used
cp -R dist "$TMPDIR/kept" && check "built again, as revision 2" packaging/deb/build 2
check "upgraded" installed 2
check "to revision 2" of_revision 2
check "used after that" used
check "removed" gone --remove
check "purged" gone --purge
check "nothing is left" nothing_left
# shellcheck disable=SC2046
rm -f $(set_of 2)
finish
