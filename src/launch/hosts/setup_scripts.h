// Scripts that HostSetup runs in the hosts' shells. They are POSIX sh with tar, sha256sum and df;
// the variables that they use are set in front of them.
#pragma once

namespace lockstep::detail {

// What stands in front of the others: `fail` says why a host cannot be made ready, as
// remote_error() takes it, `synced` makes what files hold outlive a power failure, before
// they get their names, and `expand` turns ~ and ~/FOLDER into paths of this host.
inline constexpr const char* kCommon = R"sh(
umask 022
fail() { echo "lockstep: $1" >&2; exit 4; }
synced() { sync -- "$@" 2>/dev/null || sync; }
expand() { case $1 in '~') echo "$HOME" ;; '~/'*) echo "$HOME/${1#'~/'}" ;; *) echo "$1" ;; esac; }
)sh";

// Uses $hash, $machine and $libc; reads "sha256  path" lines. Prints "free KILOBYTES", then
// "installed" or "switched", or "missing SHA256" for each content that the host lacks.
inline constexpr const char* kAskProgram = R"sh(
home=$HOME/.lockstep
here="$(uname -s) $(uname -m)"
[ "$here" = "$machine" ] || fail "it is a $here, the program is for $machine"
if [ -n "$libc" ] && command -v getconf >/dev/null; then
  theirs=$(getconf GNU_LIBC_VERSION 2>/dev/null)
  case $theirs in
    'glibc 2.'*) theirs=${theirs#glibc } ;;
    *) fail "its C library is not glibc, which the program needs" ;;
  esac
  [ "${theirs#2.}" -ge "${libc#2.}" ] ||
    fail "its C library is glibc $theirs, the program needs $libc or newer"
fi
for tool in tar sha256sum df; do
  command -v $tool >/dev/null || fail "it has no $tool"
done
said=$(mkdir -p "$home/files" 2>&1) || fail "its home $HOME cannot be written: ${said##*: }"
set -- $(df -Pk "$home" | tail -n 1)
echo "free $4"
if [ -x "$home/$hash/lockstep" ] && "$home/$hash/lockstep" --version >/dev/null 2>&1; then
  if [ "$(readlink "$home/current")" = "$hash" ]; then
    echo installed
  else
    ln -s "$hash" "$home/current.$$" && mv -fT "$home/current.$$" "$home/current" || exit 1
    echo switched
  fi
  exit 0
fi
said=$( { : >"$home/files/writable.$$"; } 2>&1) ||
  fail "its home $HOME cannot be written: ${said##*: }"
rm -f "$home/files/writable.$$"
while read -r sha path; do
  [ -f "$home/files/$sha" ] || echo "missing $sha"
done
)sh";

// Uses $hash; reads a tar stream of "manifest" and the missing contents, named by their SHA-256.
// Removes what an interrupted call left behind.
inline constexpr const char* kInstallProgram = R"sh(
set -eu
home=$HOME/.lockstep
in=$home/incoming.$$
for old in "$home"/incoming.*; do
  if [ -d "$old" ] && ! kill -0 "${old##*.}" 2>/dev/null; then rm -rf "$old"; fi
done
trap 'rm -rf "$in"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$in"
tar -xf - --no-same-owner -C "$in"
cd "$in"
synced *
while read -r sha path; do
  [ -f "$sha" ] || continue
  echo "$sha  $sha" | sha256sum --check --status || fail "$path arrived damaged"
  chmod 755 "$sha"
  mv -f "$sha" "$home/files/$sha"
done < manifest
while read -r sha path; do
  mkdir -p "version/${path%/*}"
  ln "$home/files/$sha" "version/$path" 2>/dev/null || {
    cp "$home/files/$sha" "version/$path"
    synced "version/$path"
  }
done < manifest
ln -s bin/lockstep version/lockstep
said=$(version/lockstep --version 2>&1) ||
  fail "the program was copied but does not run there: $(printf %s "$said" | tail -n 1)"
if ! "$home/$hash/lockstep" --version >/dev/null 2>&1; then
  if [ -d "$home/$hash" ]; then mv -T "$home/$hash" broken; fi
  mv -T version "$home/$hash"
fi
ln -s "$hash" "$home/current.$$"
mv -fT "$home/current.$$" "$home/current"
)sh";

// Uses $to; reads "sha256  path" lines. Prints "free KILOBYTES", then sha256sum's lines.
inline constexpr const char* kAskFiles = R"sh(
to=$(expand "$to")
said=$(mkdir -p "$to" 2>&1) || fail "$to cannot be made: ${said##*: }"
cd "$to" || exit 1
set -- $(df -Pk . | tail -n 1)
echo "free $4"
LC_ALL=C sha256sum --check 2>/dev/null
exit 0
)sh";

// Uses $to; reads a tar stream of "manifest" ("sha256  path" lines) and the files named 0, 1, ...
// in the order of these lines.
inline constexpr const char* kPutFiles = R"sh(
set -eu
to=$(expand "$to")
said=$(mkdir -p "$to" 2>&1) || fail "$to cannot be made: ${said##*: }"
cd "$to"
here=.lockstep-incoming.$(uname -n)
for old in "$here".*; do
  if [ -d "$old" ] && ! kill -0 "${old##*.}" 2>/dev/null; then rm -rf "$old"; fi
done
in=$here.$$
trap 'rm -rf "$in"' EXIT
trap 'exit 1' HUP INT TERM
said=$(mkdir "$in" 2>&1) || fail "$to cannot be written: ${said##*: }"
tar -xf - --no-same-owner -C "$in"
n=0
while IFS= read -r line; do
  path=${line#*  }
  echo "${line%%  *}  $in/$n" | sha256sum --check --status || fail "$path arrived damaged"
  n=$((n + 1))
done < "$in/manifest"
(cd "$in" && synced *)
n=0
while IFS= read -r line; do
  path=${line#*  }
  case $path in */*) mkdir -p -- "${path%/*}" ;; esac
  mv -fT -- "$in/$n" "$path"
  n=$((n + 1))
done < "$in/manifest"
)sh";

// Uses $source, $point, $type and $options. Prints "added" and "mounted" where it did so.
inline constexpr const char* kMount = R"sh(
as_root=
[ "$(id -u)" = 0 ] || as_root='sudo -n'
line="$source $point $type $options"
old=
while read -r a b c d rest || [ -n "$a" ]; do
  case $a in '#'*) continue ;; esac
  if [ "$b" = "$point" ]; then old="$a $b $c $d"; fi
done < /etc/fstab
if [ -z "$old" ]; then
  end=
  [ -z "$(tail -c 1 /etc/fstab)" ] || end='\n'
  printf "$end%s 0 0\n" "$line" | $as_root tee -a /etc/fstab >/dev/null || exit 1
  echo added
elif [ "$old" != "$line" ]; then
  fail "its /etc/fstab has another line for $point: $old"
fi
$as_root mkdir -p "$point" || exit 1
on=
while read -r a b rest; do
  if [ "$b" = "$point" ]; then on=$a; fi
done < /proc/mounts
if [ -z "$on" ]; then
  $as_root mount "$point" || exit 4
  echo mounted
else
  case $type in
    nfs*) [ "$on" = "$source" ] || fail "$on is mounted at $point already" ;;
  esac
fi
)sh";

// Uses $packages. Prints "added NAMES" where it installed any.
inline constexpr const char* kPackages = R"sh(
as_root=
[ "$(id -u)" = 0 ] || as_root='sudo -n'
command -v apt-get >/dev/null || fail "it has no apt-get: leave out --install"
missing=
for package in $packages; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq"
$get install -y --no-install-recommends $missing >&2 || {
  $get update >&2 && $get install -y --no-install-recommends $missing >&2
} || exit 4
echo "added$missing"
)sh";

// Prints "removed NAME" for each version. One that a job began with stays while the job lives.
inline constexpr const char* kPrune = R"sh(
home=$HOME/.lockstep
current=$(readlink "$home/current")
for folder in "$home"/*/; do
  folder=${folder%/}
  [ -x "$folder/bin/lockstep" ] && [ ! -L "$folder" ] || continue
  [ "${folder##*/}" != "$current" ] || continue
  real=$(readlink -f "$folder")
  for link in "$home"/jobs/*/program; do
    [ -f "${link%/*}/key" ] || continue
    case $(readlink "$link") in "$real"/*) continue 2 ;; esac
  done
  rm -rf "$folder" || exit 1
  echo "removed ${folder##*/}"
done
[ ! -d "$home/files" ] || find "$home/files" -type f -links 1 -delete
)sh";

}  // namespace lockstep::detail
